#include "providers/cpu/waiting.h"

#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <thread>

using namespace leadline::cpu;

namespace {

std::string line(long call, uint64_t first = 1, uint64_t second = 1) {
  char text[128];
  snprintf(text, sizeof text, "%ld 0x%lx 0x%lx 0x0 0x0 0x0 0x0 0x7ffc00001000 0x7f0000001000\n", call,
           static_cast<unsigned long>(first), static_cast<unsigned long>(second));
  return text;
}

Wait wait_at(const std::string& text) {
  InKernel now;
  REQUIRE(parse_in_kernel(text, &now));
  return wait_of(now, [](uintptr_t address) { return address == 0x5000; });
}

}  // namespace

TEST_CASE("a system call says what is waited for") {
  CHECK(wait_at("running\n") == Wait::kRunning);
  CHECK(wait_at("-1 0x7ffc00001000 0x7f0000001000\n") == Wait::kIo);
  CHECK(wait_at(line(SYS_futex, 0x5000)) == Wait::kGil);
  CHECK(wait_at(line(SYS_futex, 0x5004)) == Wait::kLock);
  CHECK(wait_at(line(SYS_read)) == Wait::kIo);
  CHECK(wait_at(line(SYS_ppoll, 0x1000, 2)) == Wait::kIo);
  CHECK(wait_at(line(SYS_ppoll, 0, 0)) == Wait::kSleep);
  CHECK(wait_at(line(SYS_pselect6, 0)) == Wait::kSleep);
  CHECK(wait_at(line(SYS_clock_nanosleep)) == Wait::kSleep);
  CHECK(wait_at(line(SYS_wait4)) == Wait::kChild);
  CHECK(wait_at(line(SYS_clone, 0x4111)) == Wait::kChild);  // CLONE_VFORK, as posix_spawn calls it
  CHECK(wait_at(line(SYS_clone, 0x11)) == Wait::kOther);
  CHECK(wait_at(line(SYS_ioctl)) == Wait::kDevice);
  CHECK(wait_at(line(SYS_rt_sigtimedwait)) == Wait::kOther);
}

TEST_CASE("what is no such line is refused") {
  InKernel now;
  for (const char* text : {"", "x", "202", "202 0x1 0x2", " \n", "202 0x1 0x2 0x3 0x4 0x5"})
    CHECK(!parse_in_kernel(text, &now));
  CHECK(!parse_in_kernel(std::string(300, '1'), &now));
  CHECK(!read_in_kernel(-1, &now));
}

TEST_CASE("every wait has words of its own") {
  for (size_t i = 0; i < kWaits; ++i) {
    for (size_t j = 0; j < i; ++j) {
      CHECK(to_text(static_cast<Wait>(i)) != to_text(static_cast<Wait>(j)));
      CHECK(to_word(static_cast<Wait>(i)) != to_word(static_cast<Wait>(j)));
    }
  }
}
