// Assembly without unwind information, as BLAS libraries have it, and code made at run time, under a known anchor: the
// right caller, or none.
#include "unwind/gap.h"

#include <doctest/doctest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "unwind/call_before.h"
#include "unwind/rule_cache.h"

#ifdef __x86_64__
// Kernels that call `look` from their middle: `look` knows where the kernel stood and what its stack was.
extern "C" {
void gap_kernel_pushes(void (*look)());
void gap_kernel_plain(void (*look)());
void gap_kernel_framed(void (*look)());
void gap_kernel_late(void (*look)());
void gap_look();
extern char gap_kernel_pushes_after[], gap_kernel_plain_after[], gap_kernel_framed_after[], gap_kernel_late_after[];
}
asm(R"(
  .pushsection .text
  .globl gap_kernel_pushes
  .globl gap_kernel_plain
  .globl gap_kernel_framed
  .globl gap_kernel_pushes_after
  .globl gap_kernel_plain_after
  .globl gap_kernel_framed_after
  .globl gap_kernel_late
  .globl gap_kernel_late_after
gap_kernel_pushes:
  push %rbx
  push %rbp
  push %r12
  push %r13
  sub $168, %rsp
  mov %rdi, 16(%rsp)
  mov $77, %ebp
  call *%rdi
gap_kernel_pushes_after:
  add $168, %rsp
  pop %r13
  pop %r12
  pop %rbp
  pop %rbx
  ret
gap_kernel_plain:
  sub $8, %rsp
  call *%rdi
gap_kernel_plain_after:
  add $8, %rsp
  ret
gap_kernel_framed:
  push %rbp
  mov %rsp, %rbp
  and $-64, %rsp
  sub $320, %rsp
  call *%rdi
gap_kernel_framed_after:
  mov %rbp, %rsp
  pop %rbp
  ret
gap_kernel_late:
  test %rdi, %rdi
  je 2f
  movl $3, %eax
1:
  dec %eax
  jne 1b
  push %rbx
  push %rbp
  xor %ebp, %ebp
  sub $40, %rsp
  call *%rdi
gap_kernel_late_after:
  add $40, %rsp
  pop %rbp
  pop %rbx
2:
  ret
  .popsection
)");

namespace leadline::unwind {
namespace {

struct Request {
  uintptr_t anchor = 0;
  uintptr_t kernel = 0;   // where it begins; 0: nobody says
  uintptr_t goes_on = 0;  // in the kernel, after its call
  bool lie = false;       // the symbol is of another function
  std::vector<NativeFrame> found;
} request;

FunctionRange function_at(void*, uintptr_t pc) {
  if (request.kernel == 0 || pc < request.kernel || pc >= request.kernel + 256) return {};
  const uintptr_t begin = request.lie ? reinterpret_cast<uintptr_t>(&gap_look) : request.kernel;
  return {begin, begin + 256};
}

}  // namespace
}  // namespace leadline::unwind

// Called by the kernels. The frame pointer that the kernel has is the one that is here.
extern "C" __attribute__((noinline, no_sanitize("address", "undefined"))) void gap_look() {
  using namespace leadline::unwind;
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const uintptr_t bp =
      *reinterpret_cast<const uintptr_t*>(here);  // as the kernel had it: pushed first, as below a frame pointer
  const uintptr_t to = std::min(request.anchor + 4096, stack_end(here, gettid() == getpid()));
  // The kernel's stack pointer after its call: just above the word that its call pushed.
  uintptr_t sp = 0;
  for (uintptr_t at = here - 512; at < to; at += 8) {
    if (*reinterpret_cast<const uintptr_t*>(at) == request.goes_on) sp = at + 8;
    if (sp != 0) break;
  }
  static std::vector<uintptr_t> words;
  words.assign((to - sp) / sizeof(uintptr_t), 0);
  auto* const put = static_cast<volatile uintptr_t*>(words.data());
  for (size_t i = 0; i < words.size(); ++i) put[i] = reinterpret_cast<const uintptr_t*>(sp)[i];
  const StackCopy copy{sp, reinterpret_cast<const unsigned char*>(words.data()), words.size() * sizeof(uintptr_t)};
  request.found = cross_gap({request.goes_on, sp, bp}, true, copy, request.anchor, function_at, nullptr);
}

namespace leadline::unwind {
namespace {

using Kernel = void (*)(void (*)());

__attribute__((noinline)) void calls_kernel(Kernel kernel) {
  volatile uintptr_t stale[32];  // what a scan might take for a return address
  for (auto& word : stale) word = reinterpret_cast<uintptr_t>(&calls_kernel) + 4;
  kernel(gap_look);
  asm volatile("" ::"r"(&stale));
}

__attribute__((noinline)) bool run(Kernel kernel, uintptr_t start, uintptr_t goes_on, bool lie = false) {
  volatile char anchor[64] = {};
  request = {};
  request.anchor = reinterpret_cast<uintptr_t>(&anchor[8]);
  request.kernel = start;
  request.goes_on = goes_on;
  request.lie = lie;
  calls_kernel(kernel);
  asm volatile("" ::"r"(&anchor));
  if (request.found.empty()) return false;
  // The kernel, its caller, the frame of the anchor.
  CHECK(request.found.front().pc == goes_on);
  REQUIRE(request.found.size() == 3);
  const auto in = [](uintptr_t pc, auto* function) {
    const auto from = reinterpret_cast<uintptr_t>(function);
    return pc > from && pc < from + 4096;
  };
  CHECK(in(request.found[1].pc, &calls_kernel));
  CHECK(request.found[2].sp <= request.anchor);
  CHECK(request.found[2].cfa > request.anchor);
  return true;
}

uintptr_t address(const void* of) { return reinterpret_cast<uintptr_t>(of); }

}  // namespace

TEST_CASE("assembly without unwind information is left for its caller") {
  REQUIRE(available());
  CHECK(run(gap_kernel_pushes, address(reinterpret_cast<void*>(&gap_kernel_pushes)), address(gap_kernel_pushes_after)));
  CHECK(run(gap_kernel_plain, address(reinterpret_cast<void*>(&gap_kernel_plain)), address(gap_kernel_plain_after)));
  CHECK(run(gap_kernel_framed, address(reinterpret_cast<void*>(&gap_kernel_framed)), address(gap_kernel_framed_after)));
  CHECK(run(gap_kernel_late, address(reinterpret_cast<void*>(&gap_kernel_late)), address(gap_kernel_late_after)));
}

TEST_CASE("so is code made at run time, of which no symbol says where it begins") {
  REQUIRE(available());
  // Its buffer was never written: what an earlier call left there may make it doubtful, never wrong.
  static_cast<void>(run(gap_kernel_pushes, 0, address(gap_kernel_pushes_after)));
  auto* const page =
      static_cast<unsigned char*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(page != MAP_FAILED);
  constexpr unsigned char kCode[] = {0x53, 0x55, 0x48, 0x83, 0xec, 0x48, 0xff, 0xd7,
                                     0x48, 0x83, 0xc4, 0x48, 0x5d, 0x5b, 0xc3};
  std::memcpy(page, kCode, sizeof kCode);
  REQUIRE(mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0);
  CHECK(run(reinterpret_cast<Kernel>(page), 0, address(page + 8)));
  munmap(page, 4096);
}

TEST_CASE("a wrong symbol gives no frame rather than a false one") {
  REQUIRE(available());
  const bool found = run(gap_kernel_pushes, address(reinterpret_cast<void*>(&gap_kernel_pushes)),
                         address(gap_kernel_pushes_after), true);
  static_cast<void>(found);  // either nothing, or the frames that run() has checked
}

TEST_CASE("calls are told by the bytes before a return address") {
  alignas(16) unsigned char code[32];
  const auto kind = [&](std::initializer_list<int> bytes) {
    std::fill(std::begin(code), std::end(code), 0x90);
    std::transform(bytes.begin(), bytes.end(), code + 16 - bytes.size(),
                   [](int byte) { return static_cast<unsigned char>(byte); });
    return call_before(address(code + 16)).kind;
  };
  CHECK(kind({0xe8, 1, 0, 0, 0}) == Call::kDirect);
  CHECK(kind({0xff, 0xd0}) == Call::kIndirect);
  CHECK(kind({0x41, 0xff, 0xd4}) == Call::kIndirect);
  CHECK(kind({0xff, 0x15, 1, 2, 3, 4}) == Call::kIndirect);
  CHECK(kind({0xff, 0x54, 0x24, 0x10}) == Call::kIndirect);
  CHECK(kind({0x42, 0xff, 0x94, 0xf8, 1, 2, 3, 4}) == Call::kIndirect);
  CHECK(kind({0x90, 0x90, 0xff, 0xe0}) == Call::kNone);  // a jump
  CHECK(kind({0x90}) == Call::kNone);
  CHECK(call_before(0x10).kind == Call::kNone);
}

}  // namespace leadline::unwind
#endif
