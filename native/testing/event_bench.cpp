// What operators and allocations take in the monitor and the collector, for counting under callgrind.
//
//   event_bench nothing|operators|memory STEPS
//
// Between two events a program runs thousands of instructions of its own, and ours are out of the caches when the next
// one comes. So here everything is thrown out of the caches of the first level before each event, and what is missed is
// what the event touches. `nothing` throws out as often as `operators` does and has no events.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "collector/collector.h"
#include "monitor/monitor.h"
#include "stack/fake_python.h"

namespace {

using namespace leadline;

constexpr size_t kLine = 64;
constexpr size_t kThrownOut = 64 << 10;  // twice what such a cache holds
std::array<unsigned char, kThrownOut> g_data;

[[gnu::noinline]] void throw_out() {
  for (size_t at = 0; at < g_data.size(); at += kLine) {
    const unsigned char read = *static_cast<volatile unsigned char*>(&g_data[at]);
    static_cast<void>(read);
  }
#if defined(__x86_64__)
  asm volatile(".rept 1024\n jmp 1f\n .balign 64\n 1:\n .endr");
#endif
}

// A Linear layer and a ReLU, as torch calls them.
struct Operator {
  const char* name;
  bool recorded;  // by autograd
  uint32_t below;
};
constexpr std::array kStep{
    Operator{"aten::linear", true, 0},     Operator{"aten::t", true, 1},     Operator{"aten::transpose", true, 2},
    Operator{"aten::as_strided", true, 3}, Operator{"aten::addmm", true, 1}, Operator{"aten::relu", true, 0},
    Operator{"aten::clamp_min", false, 1}, Operator{"aten::mul_", false, 0},
};

void run_operators(bool measured) {
  static int64_t sequence = 0;
  std::array<char, kStep.size()> tokens;
  const auto end_down_to = [&](uint32_t open, uint32_t below) {
    for (; open > below; --open) {
      throw_out();
      if (measured) Monitor::instance().end_operator(&tokens[open - 1]);
    }
  };
  uint32_t open = 0;
  for (const Operator& one : kStep) {
    end_down_to(open, one.below);
    open = one.below;
    leadline_operator_event op{};
    op.name = one.name;
    op.sequence = one.recorded ? sequence++ : -1;
    op.thread = 1;
    op.stable_name = 1;
    throw_out();
    if (measured) Monitor::instance().begin_operator(op, &tokens[open]);
    ++open;
  }
  end_down_to(open, 0);
}

// Inside an operator, where nearly all of a program's allocations are.
void run_memory() {
  static uint64_t address = 4096;
  address += 64;
  throw_out();
  Monitor::instance().memory({address, 256, 0, -1, -1, -1});
  throw_out();
  Monitor::instance().memory({address, INT64_MIN, 0, -1, -1, -1});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  testing::FakePython::chain = {{100, 1, 10}, {200, 2, 20}};
  testing::FakePython::functions = {{1, "main"}, {2, "step"}};
  Monitor::instance().set_python(testing::FakePython::source());
  Collector collector(CollectorOptions{});
  leadline_subscription subscription{};
  constexpr uint32_t kDomains = LEADLINE_DOMAIN_OPERATOR | LEADLINE_DOMAIN_REGION | LEADLINE_DOMAIN_MEMORY;
  if (Monitor::instance().subscribe(kDomains, &collector, &subscription) != LEADLINE_OK) return 1;
  const bool memory = std::strcmp(argv[1], "memory") == 0;
  const bool nothing = std::strcmp(argv[1], "nothing") == 0;
  int token = 0;
  if (memory) {
    leadline_operator_event op{};
    op.name = "aten::empty";
    op.sequence = -1;
    op.stable_name = 1;
    Monitor::instance().begin_operator(op, &token);
  }
  for (long left = std::strtol(argv[2], nullptr, 10); left > 0; --left) {
    if (memory) {
      run_memory();
    } else {
      run_operators(!nothing);
    }
  }
  if (memory) Monitor::instance().end_operator(&token);
  Monitor::instance().unsubscribe(subscription);
  return 0;
}
