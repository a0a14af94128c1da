// NVTX as a program's copy of its header calls it: through the table of functions that the tool fills.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>

#include "gpu/measure.h"
#include "providers/nvidia/nvtx.h"
#include "testing/failing_allocator.h"
#include "testing/forked_child.h"
#include "testing/test_monitor.h"

namespace leadline::testing {
namespace {

using nvidia::nvtx::EventAttributes;

// The program's side of one NVTX module.
template <unsigned kCount>
struct Slots {
  std::array<void (*)(), kCount> functions{};
  std::array<void (**)(), kCount> slots{};
  Slots() {
    for (unsigned i = 0; i < kCount; ++i) slots[i] = &functions[i];
  }
};
Slots<20> core;
Slots<20> core2;

int functions_of(nvidia::nvtx::Module module, nvidia::nvtx::FunctionSlot** slots, unsigned* count) {
  auto& of = module == nvidia::nvtx::Module::kCore ? core : core2;
  *slots = of.slots.data();
  *count = static_cast<unsigned>(of.slots.size());
  return 1;
}

const void* export_table(std::uint32_t) {
  static const nvidia::nvtx::CallbacksTable table{sizeof(nvidia::nvtx::CallbacksTable), functions_of};
  return &table;
}

template <class Function>
Function* core_call(unsigned id) {
  return reinterpret_cast<Function*>(core.functions.at(id));
}
template <class Function>
Function* core2_call(unsigned id) {
  return reinterpret_cast<Function*>(core2.functions.at(id));
}

int initialised() {
  TestMonitor::reset(nullptr);
  nvidia::nvtx_start({"skipped"});
  return leadline_nvtx_initialize(export_table);
}

struct Nvtx {
  Nvtx() { REQUIRE(found == 1); }
  ~Nvtx() {
    TestMonitor::ignore_events(false);
    nvidia::nvtx_stop();
  }
  Nvtx(const Nvtx&) = delete;
  Nvtx& operator=(const Nvtx&) = delete;

  const int found = initialised();  // fills the table that the others are read from
  int (*push)(const char*) = core_call<int(const char*)>(nvidia::nvtx::core::kRangePushA);
  int (*push_wide)(const wchar_t*) = core_call<int(const wchar_t*)>(nvidia::nvtx::core::kRangePushW);
  int (*pop)() = core_call<int()>(nvidia::nvtx::core::kRangePop);
  std::uint64_t (*start)(const char*) = core_call<std::uint64_t(const char*)>(nvidia::nvtx::core::kRangeStartA);
  void (*end)(std::uint64_t) = core_call<void(std::uint64_t)>(nvidia::nvtx::core::kRangeEnd);
  int (*push_in)(void*, const EventAttributes*) =
      core2_call<int(void*, const EventAttributes*)>(nvidia::nvtx::core2::kDomainRangePushEx);
  int (*pop_in)(void*) = core2_call<int(void*)>(nvidia::nvtx::core2::kDomainRangePop);
  void* (*domain)(const char*) = core2_call<void*(const char*)>(nvidia::nvtx::core2::kDomainCreateA);
  const void* (*keep)(void*,
                      const char*) = core2_call<const void*(void*, const char*)>(nvidia::nvtx::core2::kRegisterStringA);
  void (*name_category)(void*, std::uint32_t, const char*) =
      core2_call<void(void*, std::uint32_t, const char*)>(nvidia::nvtx::core2::kNameCategoryA);
};

EventAttributes attributes(const void* registered, std::uint64_t payload) {
  EventAttributes a{};
  a.category = 5;
  a.message_type = nvidia::nvtx::MessageType::kRegistered;
  a.message.registered = registered;
  a.payload_type = nvidia::nvtx::PayloadType::kUint64;
  a.payload.u64 = payload;
  a.color_type = nvidia::nvtx::ColorType::kArgb;
  a.color = 0xff8800;
  return a;
}

}  // namespace

TEST_CASE("a range says its domain, category, payload and colour; too many payloads vary") {
  const Nvtx nvtx;
  void* domain = nvtx.domain("a \"domain\"");
  nvtx.name_category(domain, 5, "five");
  const void* name = nvtx.keep(domain, "range");
  for (std::uint64_t i = 0; i < 40; ++i) {
    const EventAttributes a = attributes(name, i % 33);
    CHECK(nvtx.push_in(domain, &a) == 0);
    const std::string payload = i % 33 == 32 ? "\"varies\"" : std::to_string(i % 33);
    CHECK(TestMonitor::detail_of("range") ==
          "{\"domain\": \"a \\\"domain\\\"\", \"category\": \"five\", \"payload\": " + payload +
              ", \"color\": \"#ff8800\"}");
    CHECK(nvtx.pop_in(domain) == 0);
  }
  CHECK(nvtx.pop_in(domain) == -1);
}

TEST_CASE("a name or domain of any length gives a region and a detail that is whole") {
  const Nvtx nvtx;
  const std::wstring wide(1000, L'\u00f6');
  CHECK(nvtx.push_wide(wide.c_str()) == 0);
  CHECK(nvtx.pop() == 0);
  void* domain = nvtx.domain(std::string(2000, 'd').c_str());
  const EventAttributes a = attributes(nvtx.keep(domain, "in a long domain"), 1);
  CHECK(nvtx.push_in(domain, &a) == 0);
  CHECK(TestMonitor::detail_of("in a long domain") == "{\"category\": 5, \"payload\": 1, \"color\": \"#ff8800\"}");
  CHECK(nvtx.pop_in(domain) == 0);
}

TEST_CASE("a range allocates nothing once its thread has had one as deep") {
  const Nvtx nvtx;
  void* domain = nvtx.domain("counted");
  const EventAttributes a = attributes(nvtx.keep(domain, "counted range"), 7);
  TestMonitor::ignore_events(true);
  std::uint64_t of_ranges = 0;
  for (int round = 0; round < 2; ++round) {
    const std::uint64_t before = t_allocations.made;
    for (int i = 0; i < 100; ++i) {
      nvtx.push("outer range with a name that no small string holds");
      nvtx.push_wide(L"wide range with a name that no small string holds");
      nvtx.push_in(domain, &a);
      nvtx.end(nvtx.start("started"));
      nvtx.pop_in(domain);
      nvtx.pop();
      nvtx.pop();
    }
    of_ranges = t_allocations.made - before;
  }
  CHECK(of_ranges == 0);
}

TEST_CASE("without memory a range is lost and counted; nothing is thrown into the program's C frames") {
  const Nvtx nvtx;
  std::thread([&] {
    TestMonitor::ignore_events(true);
    t_allocations.fail = true;
    const int first = nvtx.push("no memory for the thread");
    t_allocations.fail = false;
    const int second = nvtx.push("memory again");
    t_allocations.fail = true;
    int level = 0;
    for (int i = 0; i < 1000; ++i) level = std::max(level, nvtx.push("deep"));
    void* domain = nvtx.domain("no memory for a domain");
    const void* name = nvtx.keep(nullptr, "no memory for a string that is longer than a small one");
    t_allocations.fail = false;
    CHECK(first == -1);
    CHECK(second == 0);
    CHECK(level < 1000);
    CHECK(domain == nullptr);
    CHECK(name == nullptr);
    while (nvtx.pop() > 0) {
    }
  }).join();
  CHECK(TestMonitor::losses()["internal_error"] > 0);
}

TEST_CASE("a child forked while other threads name things and push ranges goes on with its own") {
  const Nvtx nvtx;
  TestMonitor::ignore_events(true);
  const auto names = [&](std::uint64_t i) {
    nvtx.keep(nullptr, ("name " + std::to_string(i % 1000)).c_str());
    nvtx.push("other thread");
    nvtx.pop();
  };
  const auto child = [&nvtx] {
    const bool pushed = nvtx.push("child") == 0;
    const std::uint64_t id = nvtx.start("started");
    nvtx.end(id);
    const void* name = nvtx.keep(nullptr, "name of the child");
    return pushed && nvtx.pop() == 0 && id != 0 && name != nullptr ? 0 : 1;
  };
  CHECK(testing::failures_of_children_beside(names, child, 100) == 0);
}

TEST_CASE("a range that another thread ends is closed by its own thread, in order") {
  const Nvtx nvtx;
  const std::uint64_t first = nvtx.start("handed over");
  std::thread([&] { nvtx.end(first); }).join();
  CHECK(TestMonitor::losses()["range_unordered"] == 1);
  CHECK(nvtx.push("next") == 0);  // closes it
  CHECK(nvtx.pop() == 0);
  nvtx.end(first);  // twice
  nvtx.end(0);
  CHECK(TestMonitor::losses()["range_unordered"] == 1);
}

TEST_CASE(
    "XLA's titles of programs and operations are phases inside the call, where the rest of its domain is skipped") {
  const Nvtx nvtx;
  nvidia::nvtx_start({"TSL"});
  void* domain = nvtx.domain("TSL");
  REQUIRE(domain != nullptr);
  EventAttributes a{};
  a.message_type = nvidia::nvtx::MessageType::kRegistered;
  const auto push = [&](const char* text) {
    a.message.registered = nvtx.keep(domain, text);
    return nvtx.push_in(domain, &a);
  };
  CHECK(std::string(static_cast<const char*>(nvtx.keep(domain, "dot.1 = f32[] add(a, b)"))).empty());
  const std::uint64_t before = nvidia::nvtx_status().domains.back().titles;
  {
    const Region line("line");
    a.message_type = nvidia::nvtx::MessageType::kAscii;
    a.message.ascii = "XlaPass:#name=cse,module=jit_step,program_id=7#";
    CHECK(nvtx.push_in(domain, &a) == 0);
    a.message_type = nvidia::nvtx::MessageType::kRegistered;
    CHECK(push("XlaModule:#hlo_module=gemm_fusion_dot.85#") == 1);
    CHECK(push("Thunk:#hlo_op=tried.out#") == 2);  // of no program with a number
    CHECK(nvtx.pop_in(domain) == 2);
    CHECK(push("XlaModule:#hlo_module=jit_step,program_id=7#") == 2);
    CHECK(push("Thunk:#name=jit(step)/add,hlo_op=add.1,unique_hlo_op_id=3#") == 3);
    gpu::emit_measure(leadline_monitor_context(), MetricKind::kCopyBytes, 1, 0, 0);
    for (int left = 3; left >= 0; --left) CHECK(nvtx.pop_in(domain) == left);
  }
  const std::string folded = TestMonitor::folded();
  CHECK(
      folded.find("line;XlaModule:#hlo_module=jit_step,program_id=7#;Thunk:#name=jit(step)/add,hlo_op=add.1,unique_") !=
      std::string::npos);
  CHECK(folded.find("XlaPass") == std::string::npos);
  CHECK(folded.find("gemm_fusion") == std::string::npos);
  CHECK(folded.find("tried.out") == std::string::npos);
  CHECK(nvidia::nvtx_status().domains.back().titles == before + 2);
  CHECK(TestMonitor::losses()["range_unordered"] == 0);
  nvidia::nvtx_start({}, {"tsl"});
  CHECK(nvtx.domain("TSL") == nullptr);  // so that XLA annotates for its own profiler
  a.message_type = nvidia::nvtx::MessageType::kAscii;
  a.message.ascii = "Thunk:#hlo_op=left.alone#";
  CHECK(nvtx.push_in(domain, &a) == 0);
  CHECK(nvtx.pop_in(domain) == 0);
  CHECK(TestMonitor::folded().find("left.alone") == std::string::npos);
}

}  // namespace leadline::testing
