// What makes the text of a device a library that the fake Compute Sanitizer can run: all threads of a launch at once,
// in warps. Linked with simt.cpp and the text, which stands behind simt.h.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "testing/simt/simt.h"

namespace {

std::mutex one_launch;  // the stand-in runs one at a time
std::uint64_t launches = 0;

}  // namespace

#define LEADLINE_FAKE extern "C" __attribute__((visibility("default")))

// Calls `thread` with the number of each thread of the grid. A deadlock ends the process with its sentence.
LEADLINE_FAKE void leadline_fake_run(void (*thread)(void* work, std::uint64_t number), void* work, std::uint32_t blocks,
                                     std::uint32_t threads) {
  const std::lock_guard lock(one_launch);
  const std::string problem = leadline::simt::run(
      {{blocks}, {threads}, ++launches, true, [=] {
         thread(work, std::uint64_t{leadline::simt::block_number()} * threads + leadline::simt::thread_number());
       }});
  if (problem.empty()) return;
  std::fprintf(stderr, "%s\n", problem.c_str());
  std::abort();
}

// The running thread is at a barrier of its block.
LEADLINE_FAKE void leadline_fake_sync() { leadline::simt::sync_block(); }

// The running thread comes to this step: lanes at equal ones go together.
LEADLINE_FAKE void leadline_fake_at_step(std::uint64_t step) { leadline::simt::at_step(step); }
