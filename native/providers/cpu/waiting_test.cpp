#include "providers/cpu/waiting.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <tuple>

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

TEST_CASE("reading a connection is a wait for the network, reading a pipe or a socket of this machine is not") {
  int local[2];
  int pipes[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, local) == 0);
  REQUIRE(pipe(pipes) == 0);
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(bind(server, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(listen(server, 1) == 0);
  REQUIRE(getsockname(server, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  REQUIRE(connect(client, reinterpret_cast<sockaddr*>(&address), size) == 0);
  const int peer = accept(server, nullptr, nullptr);
  REQUIRE(peer >= 0);
  for (const auto& [reading, writing, expected] :
       {std::tuple{client, peer, Wait::kNetwork}, std::tuple{local[0], local[1], Wait::kIo},
        std::tuple{pipes[0], pipes[1], Wait::kIo}}) {
    std::atomic<pid_t> tid{0};
    std::thread reader([&tid, from = reading] {
      tid.store(static_cast<pid_t>(syscall(SYS_gettid)));
      char byte = 0;
      (void)!read(from, &byte, 1);
    });
    InKernel now;
    for (int tries = 0; tries < 10'000 && now.call != SYS_read; ++tries) {
      if (tid.load() != 0 && !read_in_kernel(tid.load(), &now)) break;
      sched_yield();
    }
    const bool seen = now.call == SYS_read;
    const Wait found = wait_of(now, nullptr);
    CHECK(write(writing, "x", 1) == 1);
    reader.join();
    if (seen) CHECK(found == expected);  // some systems do not say in which call a thread is
  }
  for (const int one : {local[0], local[1], pipes[0], pipes[1], server, client, peer}) close(one);
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
