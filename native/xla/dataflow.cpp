#include "xla/dataflow.h"

#include "xla/opcodes.h"

namespace leadline::xla {
namespace {

// The entry and what control flow calls, not what is fused.
std::vector<uint32_t> computations_seen(const Module& module) {
  std::vector<uint32_t> found;
  if (module.entry() == kNone) return found;
  std::vector<bool> known(module.computations().size());
  found.push_back(module.entry());
  known[module.entry()] = true;
  for (size_t at = 0; at < found.size(); ++at) {
    const Range range = module.computations()[found[at]].instructions;
    for (uint32_t row = range.from; row < range.from + range.count; ++row) {
      const Instruction& instruction = module.instructions()[row];
      if (!is_control_flow(instruction.opcode)) continue;
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

}  // namespace

Dataflow dataflow(const Module& module, size_t most) {
  Dataflow found;
  const std::vector<Instruction>& all = module.instructions();
  std::vector<uint32_t> place(all.size(), kNone);
  for (const uint32_t computation : computations_seen(module)) {
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
