// A plug-in's table of our own making, called as a framework calls it.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "providers/pjrt/pjrt_abi.h"
#include "providers/pjrt/provider.h"
#include "testing/test_monitor.h"

namespace leadline::pjrt {
namespace {

using testing::TestMonitor;

int error_object = 0;
Error* const kError = reinterpret_cast<Error*>(&error_object);
int destroyed = 0;
bool fails = false;

Error* plain(Arguments*) { return fails ? kError : nullptr; }
Error* destroy(Arguments* arguments) {
  destroyed += static_cast<ErrorDestroy*>(arguments)->error == kError ? 1 : 0;
  return nullptr;
}
Error* hardware_id(Arguments* arguments) {
  static_cast<HardwareId*>(arguments)->id = 2;
  return fails ? kError : nullptr;
}

// A device that is done when the test says so.
struct Waiting {
  void (*callback)(Error*, void*);
  void* given;
};
std::vector<Waiting> waiting;
int events_destroyed = 0;
std::size_t outputs = 2;
int sizes_asked = 0;
bool ready_at_once = false;

Error* on_ready(Arguments* arguments) {
  const auto& asked = *static_cast<OnReady*>(arguments);
  if (ready_at_once) {
    asked.callback(nullptr, asked.given);
  } else {
    waiting.push_back({asked.callback, asked.given});
  }
  return nullptr;
}
void finish_all(Error* error = nullptr) {
  for (const Waiting& each : std::exchange(waiting, {})) each.callback(error, each.given);
}
Error* event_destroy(Arguments*) {
  ++events_destroyed;
  return nullptr;
}
Error* output_count(Arguments* arguments) {
  static_cast<OutputCount*>(arguments)->count = outputs;
  return nullptr;
}
Error* object(Arguments* arguments) {
  static_cast<GetObject*>(arguments)->found = &error_object;
  return nullptr;
}
Error* buffer_size(Arguments* arguments) {
  ++sizes_asked;
  static_cast<BufferSize*>(arguments)->bytes = 100;
  return nullptr;
}

constexpr std::size_t kCount = 106;
struct Plugin {
  explicit Plugin(std::int32_t major = 0, std::size_t count = kCount) {
    std::memset(bytes, 0, sizeof bytes);
    table().struct_size = offsetof(Table, slots) + count * sizeof(void*);
    table().major = major;
    for (std::size_t i = 0; i < kCount; ++i) set(i, plain);
    set(kErrorDestroy, destroy);
    set(kDeviceLocalHardwareId, hardware_id);
    set(kEventOnReady, on_ready);
    set(kEventDestroy, event_destroy);
    set(kExecutableNumOutputs, output_count);
    set(kBufferOnDeviceSize, buffer_size);
    for (const Slot slot : {kBufferReadyEvent, kBufferDevice, kTransferManagerDevice, kLoadedExecutableGetExecutable})
      set(slot, object);
  }
  Table& table() { return *reinterpret_cast<Table*>(bytes); }
  Function* slots() { return reinterpret_cast<Function*>(bytes + offsetof(Table, slots)); }
  void set(std::size_t slot, Function function) { slots()[slot] = function; }
  Error* call(Slot slot, Arguments* arguments) { return slots()[slot](arguments); }
  alignas(8) unsigned char bytes[offsetof(Table, slots) + kCount * sizeof(void*)];
};

// A table stays in the list of those that are known, so each lives as long as the process.
Plugin& plugin() {
  static Plugin one;
  return one;
}
std::int64_t real_clock() { return now_ns(); }
ProviderStatus start(Plugin& of) {
  TestMonitor::reset(real_clock);
  ProviderOptions options;
  options.own["table"] = static_cast<int64_t>(reinterpret_cast<std::uintptr_t>(&of.table()));
  return session_provider().start(options);
}

BufferFromHost from_host(const std::int64_t* dimensions, std::size_t count) {
  BufferFromHost arguments{};
  arguments.struct_size = sizeof arguments;
  arguments.type = 11;  // f32
  arguments.dimensions = dimensions;
  arguments.dimension_count = count;
  arguments.device = &error_object;
  return arguments;
}

// A run of two results on one device. `complete`: whether the caller wants an event, as JAX does where it needs one.
struct Run {
  explicit Run(const void* executable, bool complete = false) {
    arguments.struct_size = sizeof arguments;
    arguments.executable = const_cast<void*>(executable);
    arguments.device_count = 1;
    arguments.results = lists;
    if (complete) arguments.complete = events;
  }
  Error* call() { return plugin().call(kLoadedExecutableExecute, &arguments); }
  void* made[2] = {&error_object, &error_object};
  void* events[1] = {&error_object};
  void** lists[1] = {made};
  Execute arguments{};
};
int64_t told(const char* what) { return status_value(session_provider().status(), what, int64_t{-1}); }

}  // namespace

TEST_CASE("a copy's bytes stand at its call, of the device that the plug-in names") {
  REQUIRE(status_value(start(plugin()), "ok", false));
  const std::int64_t dimensions[] = {3, 5};
  {
    const testing::Region line("line");
    BufferFromHost arguments = from_host(dimensions, 2);
    CHECK(plugin().call(kBufferFromHostBuffer, &arguments) == nullptr);
  }
  const std::vector<leadline_gpu_api_event> begun = TestMonitor::api_events(LEADLINE_BEGIN);
  REQUIRE(begun.size() == 1);
  CHECK(std::string(begun[0].name) == "PJRT_Client_BufferFromHostBuffer");
  CHECK(begun[0].device == 2);
  CHECK(begun[0].device_type == 7);
  CHECK(TestMonitor::api_events(LEADLINE_END).size() == 1);
  CHECK(TestMonitor::folded().find("line;PJRT_Client_BufferFromHostBuffer | device 2") != std::string::npos);
  CHECK(TestMonitor::folded().find("count 1 sum 60") != std::string::npos);
  session_provider().stop();
}

TEST_CASE("an error comes back as it is, counts no bytes, and those of our own questions are freed") {
  REQUIRE(status_value(start(plugin()), "ok", false));
  const std::int64_t dimensions[] = {INT64_MAX, 5};
  BufferFromHost arguments = from_host(dimensions, 2);
  fails = true;
  destroyed = 0;
  CHECK(plugin().call(kBufferFromHostBuffer, &arguments) == kError);
  fails = false;
  CHECK(destroyed == 1);  // the question for the device; the program's own error is the program's
  CHECK(TestMonitor::folded().empty());
  CHECK(status_value(session_provider().status(), "failed", int64_t{0}) == 1);
  session_provider().stop();
}

TEST_CASE("a run's results have their bytes at its call, asked once, and its end is booked where it was called") {
  REQUIRE(status_value(start(plugin()), "ok", false));
  events_destroyed = sizes_asked = 0;
  const int executable = 0;
  Run run(&executable);
  {
    const testing::Region line("line");
    for (int i = 0; i < 3; ++i) CHECK(run.call() == nullptr);
  }
  const std::vector<leadline_gpu_api_event> ended = TestMonitor::api_events(LEADLINE_END);
  REQUIRE(ended.size() == 3);
  CHECK(ended[2].bytes == 200);
  CHECK(sizes_asked == 2);
  CHECK(told("made_bytes") == 600);
  CHECK(told("copied_bytes") == 0);
  CHECK(told("ended") == 0);
  finish_all();
  CHECK(told("ended") == 3);
  CHECK(events_destroyed == 3);
  const std::string folded = TestMonitor::folded();
  CHECK(folded.find("line;PJRT_LoadedExecutable_Execute;on the device | device 2") != std::string::npos);
  CHECK(folded.find("call_time count 3") != std::string::npos);
  CHECK(folded.find("gpu_time") == std::string::npos);

  OfObject destroyed{{sizeof(OfObject), nullptr}, run.arguments.executable};
  CHECK(plugin().call(kLoadedExecutableDestroy, &destroyed) == nullptr);
  outputs = 0;  // another program at the same address
  CHECK(run.call() == nullptr);
  CHECK(told("made_bytes") == 600);
  outputs = 2;
  finish_all();
  session_provider().stop();
}

TEST_CASE(
    "the caller's own event is used and left to it, an event may be there at once, an error is freed and counted") {
  REQUIRE(status_value(start(plugin()), "ok", false));
  events_destroyed = destroyed = 0;
  const int executable = 0;
  Run run(&executable, true);
  CHECK(run.call() == nullptr);
  finish_all(kError);
  CHECK(told("ended_failed") == 1);
  CHECK(destroyed == 1);
  CHECK(events_destroyed == 0);
  ready_at_once = true;
  CHECK(run.call() == nullptr);
  ready_at_once = false;
  CHECK(told("ended") == 1);
  session_provider().stop();
}

TEST_CASE("ends that come after measuring, or in the next session, are in neither; more than may wait are counted") {
  REQUIRE(status_value(start(plugin()), "ok", false));
  const int executable = 0;
  Run run(&executable);
  CHECK(run.call() == nullptr);
  session_provider().stop();
  REQUIRE(status_value(start(plugin()), "ok", false));
  finish_all();
  CHECK(told("ended") == 0);
  CHECK(TestMonitor::folded().empty());
  constexpr int kRuns = 5000;
  for (int i = 0; i < kRuns; ++i) CHECK(run.call() == nullptr);
  const int64_t left = told("not_awaited");
  CHECK(left > 0);
  CHECK(left < kRuns);
  finish_all();
  CHECK(told("ended") == kRuns - left);
  session_provider().stop();
}

TEST_CASE("transfers in chunks are copies of their bytes") {
  REQUIRE(status_value(start(plugin()), "ok", false));
  TransferData part{};
  part.bytes = 48;
  part.object = &error_object;
  CHECK(plugin().call(kTransferManagerTransferData, &part) == nullptr);
  Chunk chunk{nullptr, 16, nullptr, nullptr};
  AddChunk added{{{sizeof(AddChunk), nullptr}, &error_object}, &chunk, nullptr};
  CHECK(plugin().call(kCopyToDeviceStreamAddChunk, &added) == nullptr);
  CHECK(told("copied_bytes") == 64);
  CHECK(TestMonitor::folded().find("PJRT_AsyncHostToDeviceTransferManager_TransferData | device 2") !=
        std::string::npos);
  session_provider().stop();
}

TEST_CASE("nothing is told in a pause, and a call that it begins in ends") {
  REQUIRE(status_value(start(plugin()), "ok", false));
  Execute arguments{};
  arguments.device_count = 1;
  session_provider().pause();
  CHECK(plugin().call(kLoadedExecutableExecute, &arguments) == nullptr);
  session_provider().resume();
  CHECK(TestMonitor::api_events(LEADLINE_BEGIN).empty());
  CHECK(TestMonitor::api_events(LEADLINE_END).empty());
  plugin().set(kEventAwait, plain);  // another tool's, from now on
  session_provider().stop();
}

TEST_CASE("what stood in a table stands there after the end; a slot that another tool took stays its own") {
  REQUIRE(status_value(start(plugin()), "ok", false));
  const Function other = [](Arguments*) -> Error* { return nullptr; };
  CHECK((plugin().slots()[kClientCompile] != plain));
  plugin().set(kClientCompile, other);
  session_provider().stop();
  CHECK((plugin().slots()[kClientCompile] == other));
  CHECK((plugin().slots()[kLoadedExecutableExecute] == plain));
  plugin().set(kClientCompile, plain);
}

TEST_CASE("a table of another version, or without the calls that execute, is left alone and said") {
  static Plugin other(1);
  static Plugin small(0, 20);
  for (Plugin* each : {&other, &small}) {
    const ProviderStatus status = start(*each);
    CHECK_FALSE(status_value(status, "ok", true));
    CHECK_FALSE(status_value(status, "message", std::string()).empty());
    CHECK((each->slots()[kClientCompile] == plain));
    session_provider().stop();
  }
}

}  // namespace leadline::pjrt
