#include "base/flight_recorder.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

using namespace leadline;

namespace {

struct File {
  std::string path =
      (std::filesystem::temp_directory_path() / ("leadline_flight_" + std::to_string(getpid()) + ".flight")).string();
  ~File() { std::filesystem::remove(path); }
  std::vector<char> bytes() const {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
};

const FlightRecorder::Entry& entry(const std::vector<char>& bytes, std::uint64_t number) {
  const char* const first = bytes.data() + 4096 + sizeof(FlightRecorder::Group) * FlightRecorder::kGroups;
  return reinterpret_cast<const FlightRecorder::Entry*>(first)[number % FlightRecorder::kEntries];
}

const FlightRecorder::Group& group(const std::vector<char>& bytes, std::uint32_t row) {
  return reinterpret_cast<const FlightRecorder::Group*>(bytes.data() + 4096)[row];
}

}  // namespace

TEST_CASE("what a killed process began last stands in its file") {
  const File file;
  const pid_t child = fork();
  if (child == 0) {
    FlightRecorder recorder;
    recorder.set_path(file.path);
    for (int i = 0; i < 1000; ++i) {
      const std::uint64_t number = recorder.begin("c10d::allreduce_");
      recorder.describe(number, {i % 2 == 0 ? "0" : "tp", "mesh_tp", 4, 2, 100 + i, "all_reduce"});
      recorder.returned(number);
      if (i < 998) recorder.done(number);
    }
    recorder.begin("c10d::barrier");
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  const std::vector<char> bytes = file.bytes();
  REQUIRE(bytes.size() == FlightRecorder::kBytes);
  CHECK(std::memcmp(bytes.data(), FlightRecorder::kMagic, 8) == 0);
  const auto& last = entry(bytes, 1001);
  CHECK(last.number == 1001);
  CHECK(std::string(last.collective) == "c10d::barrier");
  CHECK(last.returned_ns == 0);
  CHECK(last.sequence == 0);
  const auto& before = entry(bytes, 1000);
  CHECK(std::string(before.collective) == "all_reduce");
  CHECK(before.sequence == 500);
  CHECK(before.elements == 1099);
  CHECK(before.returned_ns >= before.begin_ns);
  CHECK(before.done_ns == 0);
  CHECK(std::string(group(bytes, before.group).name) == "tp");
  CHECK(group(bytes, before.group).begun == 500);
  CHECK(group(bytes, before.group).done == 499);
  CHECK(group(bytes, before.group).size == 4);
  CHECK(entry(bytes, 1001 - FlightRecorder::kEntries + 1).number == 1001 - FlightRecorder::kEntries + 1);
}

TEST_CASE("threads and very many groups") {
  const File file;
  FlightRecorder recorder;
  CHECK(recorder.begin("nobody listens") == 0);
  recorder.describe(0, {});
  recorder.returned(7);
  recorder.set_path(file.path);
  CHECK_FALSE(recorder.is_open());  // no file for who begins no collective
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&recorder] {
      for (int i = 0; i < 5000; ++i) {
        const std::uint64_t number = recorder.begin("x");
        recorder.describe(number, {"one", "", 2, 0, -1, {}});
        recorder.done(number);
        recorder.done(number);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string longest(1000, 'g');
  for (std::uint32_t i = 0; i < 2 * FlightRecorder::kGroups; ++i) {
    const std::string name = std::to_string(i) + longest;
    recorder.describe(recorder.begin(longest), {name, longest, 1, 0, -1, {}});
  }
  for (int i = 0; i < 3; ++i) recorder.set_path("");
  CHECK(recorder.begin("over") == 0);
  const std::vector<char> bytes = file.bytes();
  // One that others have lapped while it was described counts in no group: how many do rests on who gets a core.
  CHECK(group(bytes, 0).begun <= 20'000);
  CHECK(group(bytes, 0).begun > 0);
  CHECK(group(bytes, 0).done <= group(bytes, 0).begun);
  CHECK(std::strlen(group(bytes, FlightRecorder::kGroups - 1).name) == 47);
}

TEST_CASE("from which collective on is counted, what torch counts, and how long all stand") {
  const File file;
  FlightRecorder recorder;
  recorder.set_path(file.path);
  CHECK(recorder.standing_ns() == 0);
  const auto call = [&recorder](std::uint64_t since, std::uint64_t told) {
    FlightRecorder::announce({"0", "", 2, 0, -1, {}, since});
    recorder.begin("c10d::allreduce_");
    return recorder.announced(told);
  };
  recorder.done(call(17, 18));
  CHECK(recorder.standing_ns() == 0);
  const std::uint64_t open = call(99, 19);  // the group is known
  FlightRecorder::announce({"1>0", "from rank 1 to rank 0", 2, 1, -1, {}, FlightRecorder::kUnknown});
  recorder.begin("c10d::recv_");
  recorder.done(recorder.announced(FlightRecorder::kUnknown));
  const std::int64_t standing_ns = recorder.standing_ns();
  CHECK(standing_ns > 0);
  CHECK(recorder.standing_ns() >= standing_ns);
  CHECK(recorder.announced(5) == 0);
  std::vector<char> bytes = file.bytes();
  CHECK(group(bytes, 0).since == 17);
  CHECK(group(bytes, 0).begun == 2);
  CHECK(group(bytes, 0).told == 19);
  CHECK(group(bytes, 1).since == FlightRecorder::kUnknown);
  CHECK(group(bytes, 1).told == FlightRecorder::kUnknown);
  recorder.done(open);
  CHECK(recorder.standing_ns() == 0);
  recorder.set_attached(true);
  for (const char* name : {"nobody says", "nor here"}) {
    recorder.done(recorder.begin("c10d::x"));
    recorder.describe(recorder.begin("c10d::y"), {name, "", 2, 0, -1, {}});
    recorder.set_attached(false);
  }
  bytes = file.bytes();
  CHECK(group(bytes, 2).since == FlightRecorder::kUnknown);
  CHECK(group(bytes, 3).since == 0);
  File next;
  next.path += "next";
  recorder.set_path(next.path);
  recorder.done(call(3, 20));
  bytes = next.bytes();  // goes on counting
  CHECK(group(bytes, 0).since == 17);
  CHECK(group(bytes, 0).begun == 3);
  CHECK(group(bytes, 0).told == 20);
}

TEST_CASE("a place that cannot be written") {
  FlightRecorder recorder;
  recorder.set_path("/nowhere/at/all.flight");
  CHECK(recorder.begin("x") == 0);
  CHECK_FALSE(recorder.is_open());
  recorder.set_path(std::string(5000, 'x'));
  CHECK(recorder.begin("x") == 0);
}
