// Included before all else in kernels whose accesses are counted: masked loads, stores and gathers are instructions
// that the compiler calls no hook for, so each says first which lanes it touches.
#pragma once

#ifdef __x86_64__
#include <immintrin.h>
#include <stdint.h>

extern "C" {
void ll_accesses_masked(const volatile void* address, uint64_t lanes, unsigned bytes, int write);
void ll_accesses_one(const volatile void* address, unsigned bytes);
}

#ifdef __AVX2__
// The sign of each lane of a mask says whether it takes part.
#define LL_LANES_4(m) static_cast<uint64_t>(_mm256_movemask_ps(_mm256_castsi256_ps(m)))
#define LL_LANES_8(m) static_cast<uint64_t>(_mm256_movemask_pd(_mm256_castsi256_pd(m)))
#define _mm256_maskload_ps(p, m) (ll_accesses_masked((p), LL_LANES_4(m), 4, 0), _mm256_maskload_ps((p), (m)))
#define _mm256_maskload_pd(p, m) (ll_accesses_masked((p), LL_LANES_8(m), 8, 0), _mm256_maskload_pd((p), (m)))
#define _mm256_maskload_epi32(p, m) (ll_accesses_masked((p), LL_LANES_4(m), 4, 0), _mm256_maskload_epi32((p), (m)))
#define _mm256_maskload_epi64(p, m) (ll_accesses_masked((p), LL_LANES_8(m), 8, 0), _mm256_maskload_epi64((p), (m)))
#define _mm256_maskstore_ps(p, m, v) (ll_accesses_masked((p), LL_LANES_4(m), 4, 1), _mm256_maskstore_ps((p), (m), (v)))
#define _mm256_maskstore_pd(p, m, v) (ll_accesses_masked((p), LL_LANES_8(m), 8, 1), _mm256_maskstore_pd((p), (m), (v)))
#define _mm256_maskstore_epi32(p, m, v) \
  (ll_accesses_masked((p), LL_LANES_4(m), 4, 1), _mm256_maskstore_epi32((p), (m), (v)))
#define _mm256_maskstore_epi64(p, m, v) \
  (ll_accesses_masked((p), LL_LANES_8(m), 8, 1), _mm256_maskstore_epi64((p), (m), (v)))
#endif

#ifdef __AVX512F__
#define _mm512_maskz_loadu_ps(m, p) (ll_accesses_masked((p), (m), 4, 0), _mm512_maskz_loadu_ps((m), (p)))
#define _mm512_maskz_loadu_pd(m, p) (ll_accesses_masked((p), (m), 8, 0), _mm512_maskz_loadu_pd((m), (p)))
#define _mm512_maskz_loadu_epi32(m, p) (ll_accesses_masked((p), (m), 4, 0), _mm512_maskz_loadu_epi32((m), (p)))
#define _mm512_maskz_loadu_epi64(m, p) (ll_accesses_masked((p), (m), 8, 0), _mm512_maskz_loadu_epi64((m), (p)))
#define _mm512_mask_loadu_ps(s, m, p) (ll_accesses_masked((p), (m), 4, 0), _mm512_mask_loadu_ps((s), (m), (p)))
#define _mm512_mask_loadu_pd(s, m, p) (ll_accesses_masked((p), (m), 8, 0), _mm512_mask_loadu_pd((s), (m), (p)))
#define _mm512_mask_storeu_ps(p, m, v) (ll_accesses_masked((p), (m), 4, 1), _mm512_mask_storeu_ps((p), (m), (v)))
#define _mm512_mask_storeu_pd(p, m, v) (ll_accesses_masked((p), (m), 8, 1), _mm512_mask_storeu_pd((p), (m), (v)))
#define _mm512_mask_storeu_epi32(p, m, v) (ll_accesses_masked((p), (m), 4, 1), _mm512_mask_storeu_epi32((p), (m), (v)))
#define _mm512_mask_storeu_epi64(p, m, v) (ll_accesses_masked((p), (m), 8, 1), _mm512_mask_storeu_epi64((p), (m), (v)))
#ifdef __AVX512BW__
#define _mm512_maskz_loadu_epi8(m, p) (ll_accesses_masked((p), (m), 1, 0), _mm512_maskz_loadu_epi8((m), (p)))
#define _mm512_maskz_loadu_epi16(m, p) (ll_accesses_masked((p), (m), 2, 0), _mm512_maskz_loadu_epi16((m), (p)))
#define _mm512_mask_storeu_epi8(p, m, v) (ll_accesses_masked((p), (m), 1, 1), _mm512_mask_storeu_epi8((p), (m), (v)))
#define _mm512_mask_storeu_epi16(p, m, v) (ll_accesses_masked((p), (m), 2, 1), _mm512_mask_storeu_epi16((p), (m), (v)))
#endif
#endif

#endif
