#include "unwind/other_process.h"

#include <doctest/doctest.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "unwind/rule_cache.h"

using namespace leadline::unwind;

#ifdef __x86_64__
namespace {

std::string own_file() {
  char path[4096];
  const ssize_t got = readlink("/proc/self/exe", path, sizeof path);
  return {path, static_cast<size_t>(got)};
}

int add(dl_phdr_info* info, size_t, void* to) {
  const ElfW(Phdr)* first = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type == PT_LOAD && first == nullptr) first = &info->dlpi_phdr[i];
  }
  const bool program = info->dlpi_name[0] == '\0';
  static_cast<OtherProcess*>(to)->add(program ? own_file() : info->dlpi_name, info->dlpi_addr + first->p_vaddr);
  return 0;
}

struct Seen {
  std::vector<NativeFrame> own;
  std::vector<NativeFrame> copied;
  std::vector<uintptr_t> between;
  End end = End::kFull;
  End copied_end = End::kFull;
};

// Reads this thread's stack both ways. `above`, `stop`: for walk_between().
__attribute__((noinline, no_sanitize("address"))) void read(const OtherProcess& process, uintptr_t above,
                                                            uintptr_t stop, Seen* seen) {
  Registers here;
  asm volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2" : "=r"(here.pc), "=r"(here.sp), "=r"(here.bp));
  uintptr_t end = stack_end(here.sp, false);
  if (end == 0) end = stack_end(here.sp, true);
  seen->own.resize(512);
  seen->own.resize(walk(here, end, seen->own.data(), seen->own.size(), &seen->end));
  std::vector<unsigned char> copy(end - here.sp);
  for (size_t i = 0; i < copy.size(); ++i) copy[i] = reinterpret_cast<const unsigned char*>(here.sp)[i];
  seen->copied = process.walk(here, copy.data(), copy.size(), &seen->copied_end);
  uintptr_t calls[64];
  bool whole = false;
  const size_t count = walk_between(here, end, above, stop, calls, std::size(calls), &whole);
  CHECK(whole);
  seen->between.assign(calls, calls + count);
}

__attribute__((noinline)) void inner(const OtherProcess& process, uintptr_t stop, Seen* seen) {
  volatile char token = 0;
  read(process, reinterpret_cast<uintptr_t>(&token), stop, seen);
  asm volatile("");
}
__attribute__((noinline)) void middle(const OtherProcess& process, uintptr_t stop, Seen* seen) {
  inner(process, stop, seen);
  asm volatile("");
}
__attribute__((noinline)) void outer(const OtherProcess& process, Seen* seen) {
  volatile char token = 0;
  middle(process, reinterpret_cast<uintptr_t>(&token), seen);
  asm volatile("");
}

}  // namespace

TEST_CASE("a copied stack is walked as the stack itself") {
  if (!available()) return;
  OtherProcess process;
  dl_iterate_phdr(add, &process);
  Seen seen;
  outer(process, &seen);
  CHECK(seen.end == End::kOutermost);
  CHECK(seen.copied_end == End::kOutermost);
  CHECK(seen.own.size() > 4);
  CHECK(seen.copied == seen.own);
  uint64_t in_file = 0;
  const std::string* const file = process.file_of(seen.own[0].pc, &in_file);
  REQUIRE(file != nullptr);
  CHECK(*file == own_file());
  CHECK(process.file_of(8, &in_file) == nullptr);
}

TEST_CASE("between two places on the stack lie the frames that were called from the one to the other") {
  if (!available()) return;
  const OtherProcess none;
  Seen seen;
  outer(none, &seen);
  // read() ends below the inner token, outer() holds the outer one: inner() and middle() are between.
  REQUIRE(seen.own.size() > 4);
  CHECK(seen.between == std::vector<uintptr_t>{seen.own[1].pc - 1, seen.own[2].pc - 1});
  CHECK(none.walk({1, 2, 3}, nullptr, 0, &seen.end).empty());
}

TEST_CASE("files that are torn or no programs are refused, and never read beyond their ends") {
  std::ifstream whole(own_file(), std::ios::binary);
  std::vector<char> head(4096);
  whole.read(head.data(), static_cast<std::streamsize>(head.size()));
  char path[] = "/tmp/leadline-torn-XXXXXX";
  const int file = mkstemp(path);
  REQUIRE(file >= 0);
  std::mt19937 random(3);
  OtherProcess process;
  for (int round = 0; round < 300; ++round) {
    std::vector<char> bytes = head;
    for (int i = 0; i < 8; ++i) bytes[16 + random() % 1000] = static_cast<char>(random());
    bytes.resize(random() % bytes.size());
    REQUIRE(ftruncate(file, 0) == 0);
    REQUIRE(pwrite(file, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    process.add(path, 0x10000);
  }
  CHECK(!process.add("/nowhere", 0x10000));
  CHECK(!process.add("/tmp", 0x10000));
  close(file);
  unlink(path);
}
#endif
