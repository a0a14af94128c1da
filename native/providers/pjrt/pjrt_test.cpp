// A plug-in's table of our own making, called as a framework calls it.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
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

constexpr std::size_t kCount = 101;
struct Plugin {
  explicit Plugin(std::int32_t major = 0, std::size_t count = kCount) {
    std::memset(bytes, 0, sizeof bytes);
    table().struct_size = offsetof(Table, slots) + count * sizeof(void*);
    table().major = major;
    for (std::size_t i = 0; i < kCount; ++i) set(i, plain);
    set(kErrorDestroy, destroy);
    set(kDeviceLocalHardwareId, hardware_id);
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

TEST_CASE("nothing is told in a pause, and a call that it begins in ends") {
  REQUIRE(status_value(start(plugin()), "ok", false));
  Execute arguments{};
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
