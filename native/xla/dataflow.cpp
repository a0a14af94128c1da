#include "xla/dataflow.h"

#include "xla/opcodes.h"

namespace leadline::xla {
namespace {

// The entry and what control flow calls, not what is fused. `begun`: also what is waited for later.
std::vector<uint32_t> computations_seen(const Module& module, bool begun) {
  std::vector<uint32_t> found;
  if (module.entry() == kNone) return found;
  std::vector<bool> known(module.computations().size());
  found.push_back(module.entry());
  known[module.entry()] = true;
  for (size_t at = 0; at < found.size(); ++at) {
    const Range range = module.computations()[found[at]].instructions;
    for (uint32_t row = range.from; row < range.from + range.count; ++row) {
      const Instruction& instruction = module.instructions()[row];
      if (!is_control_flow(instruction.opcode) || (!begun && instruction.opcode == "async-start")) continue;
      for (uint32_t i = 0; i < instruction.called.count; ++i) {
        const uint32_t called = module.number(instruction.called, i);
        if (called == kNone || known[called]) continue;
        known[called] = true;
        found.push_back(called);
      }
    }
  }
  return found;
}

bool only_waits(std::string_view opcode) noexcept {
  return opcode.ends_with("-done") || opcode == "async-update" || opcode == "while" || opcode == "conditional";
}

// What is begun may begin something itself. `depth`, and once for each in `begun`: a damaged file may go in circles.
void executed(const Module& module, uint32_t computation, int depth, std::vector<bool>* begun,
              std::vector<uint32_t>* rows) {
  constexpr int kDeepest = 8;
  const Range listed = module.computations()[computation].instructions;
  const Range scheduled = module.computations()[computation].scheduled;
  for (uint32_t at = 0; at < (scheduled.count == 0 ? listed.count : scheduled.count); ++at) {
    const uint32_t row = scheduled.count == 0 ? listed.from + at : module.number(scheduled, at);
    if (row == kNone) continue;
    const Instruction& instruction = module.instructions()[row];
    if (is_free(instruction.opcode) || only_waits(instruction.opcode)) continue;
    const bool begins = instruction.opcode == "async-start" && instruction.called.count != 0;
    const uint32_t inner = begins ? module.number(instruction.called, 0) : kNone;
    if (inner != kNone && depth < kDeepest && !(*begun)[inner]) {
      (*begun)[inner] = true;
      executed(module, inner, depth + 1, begun, rows);
    } else {
      rows->push_back(row);
    }
  }
}

}  // namespace

std::vector<std::vector<uint32_t>> schedules(const Module& module) {
  std::vector<std::vector<uint32_t>> found;
  std::vector<bool> begun(module.computations().size());
  for (const uint32_t computation : computations_seen(module, /*begun=*/false))
    executed(module, computation, 0, &begun, &found.emplace_back());
  return found;
}

Dataflow dataflow(const Module& module, size_t most) {
  Dataflow found;
  const std::vector<Instruction>& all = module.instructions();
  std::vector<uint32_t> place(all.size(), kNone);
  for (const uint32_t computation : computations_seen(module, /*begun=*/true)) {
    const Range range = module.computations()[computation].instructions;
    for (uint32_t row = range.from; row < range.from + range.count; ++row) {
      if (is_free(all[row].opcode)) continue;
      place[row] = static_cast<uint32_t>(found.operations.size());
      found.operations.push_back(row);
    }
  }
  std::vector<uint32_t> asked(all.size(), kNone);  // for whom an instruction was last looked at
  std::vector<uint32_t> waiting;
  for (const uint32_t row : found.operations) {
    waiting.assign(1, row);
    while (!waiting.empty()) {
      const Instruction& one = all[waiting.back()];
      waiting.pop_back();
      for (uint32_t i = 0; i < one.operands.count; ++i) {
        const uint32_t operand = module.number(one.operands, i);
        if (operand == kNone || asked[operand] == row) continue;
        asked[operand] = row;
        if (place[operand] == kNone) {
          waiting.push_back(operand);
          continue;
        }
        if (found.edges.size() >= 2 * most) {
          found.edges.clear();
          return found;
        }
        found.edges.push_back(place[operand]);
        found.edges.push_back(place[row]);
      }
    }
  }
  return found;
}

}  // namespace leadline::xla
