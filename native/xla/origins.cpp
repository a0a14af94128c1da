#include "xla/origins.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "xla/opcodes.h"

namespace leadline::xla {
namespace {

constexpr size_t kFarthest = 256;  // instructions looked at for one without a stack

}  // namespace

OriginFinder::OriginFinder(const Module& module) : module_(module), users_(module.instructions().size()) {
  const std::vector<Instruction>& all = module.instructions();
  for (uint32_t row = 0; row < all.size(); ++row) {
    const Instruction& instruction = all[row];
    if (instruction.stack != 0 && !instruction.op_name.empty()) by_op_name_.emplace(instruction.op_name, row);
    for (uint32_t i = 0; i < instruction.operands.count; ++i) {
      const uint32_t operand = module.number(instruction.operands, i);
      if (operand != kNone) users_[operand].push_back(row);
    }
    // What a computation results in is used by who calls it.
    for (uint32_t i = 0; i < instruction.called.count; ++i) {
      const uint32_t computation = module.number(instruction.called, i);
      const uint32_t root = computation == kNone ? kNone : module.computations()[computation].root;
      if (root != kNone) users_[root].push_back(row);
    }
  }
}

Origin OriginFinder::at(uint32_t row, uint32_t shown, double share) const {
  const Instruction& instruction = module_.instructions()[row];
  const Instruction& name = module_.instructions()[shown];
  return {row, instruction.stack, name.op_name.empty() ? instruction.op_name : name.op_name, name.opcode, share};
}

// The parts of what an instruction calls, one for each stack and name: the heaviest stands for all.
std::vector<Origin> OriginFinder::inside(uint32_t row, Known known) const {
  std::vector<Origin> parts;
  for (const auto& [inner, weight] : weights(module_, row, known)) parts.push_back(at(inner, inner, weight));
  std::sort(parts.begin(), parts.end(), [](const Origin& a, const Origin& b) {
    if (a.stack != b.stack) return a.stack < b.stack;
    return a.op_name != b.op_name ? a.op_name < b.op_name : a.share > b.share;
  });
  double whole = 0;
  size_t kept = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    whole += parts[i].share;
    if (kept != 0 && parts[kept - 1].stack == parts[i].stack && parts[kept - 1].op_name == parts[i].op_name) {
      parts[kept - 1].share += parts[i].share;
    } else {
      parts[kept++] = parts[i];
    }
  }
  parts.resize(kept);
  const bool weighed = whole > 0 && std::isfinite(whole);
  for (Origin& part : parts) part.share = weighed ? part.share / whole : 1.0 / static_cast<double>(kept);
  std::stable_sort(parts.begin(), parts.end(), [](const Origin& a, const Origin& b) { return a.share > b.share; });
  return parts;
}

uint32_t OriginFinder::same_name(std::string_view op_name) const {
  while (!op_name.empty()) {
    const size_t end = op_name.find(';');
    const auto found = by_op_name_.find(op_name.substr(0, end));
    if (found != by_op_name_.end()) return found->second;
    if (end == std::string_view::npos) break;
    op_name.remove_prefix(end + 1);
  }
  return kNone;
}

// The first with a stack, looking in ever wider circles.
template <typename Neighbours>
uint32_t OriginFinder::nearest(uint32_t row, const Neighbours& neighbours) const {
  std::vector<uint32_t> queue{row};
  std::unordered_set<uint32_t> seen{row};
  for (size_t next = 0; next < queue.size() && next < kFarthest; ++next) {
    const uint32_t at = queue[next];
    if (module_.instructions()[at].stack != 0) return at;
    neighbours(at, [&](uint32_t other) {
      if (other != kNone && seen.insert(other).second) queue.push_back(other);
    });
  }
  return kNone;
}

Origins OriginFinder::find(uint32_t row) const {
  const Instruction& instruction = module_.instructions()[row];
  Origins found;
  if (instruction.called.count != 0 && !is_control_flow(instruction.opcode)) {
    const bool fused = instruction.opcode == "fusion";
    if (fused || instruction.stack == 0) found.parts = inside(row, Known::kByStack);
    if (!found.parts.empty()) {
      found.rung = Rung::kInside;
      return found;
    }
  }
  if (instruction.stack != 0) {
    found.rung = Rung::kOwn;
    found.parts.push_back(at(row, row, 1));
    return found;
  }
  uint32_t other = same_name(instruction.op_name);
  found.rung = Rung::kSameName;
  if (other == kNone) {
    found.rung = Rung::kUser;
    other = nearest(row, [&](uint32_t from, const auto& visit) {
      for (const uint32_t user : users_[from]) visit(user);
    });
  }
  if (other == kNone) {
    found.rung = Rung::kOperand;
    other = nearest(row, [&](uint32_t from, const auto& visit) {
      const Range operands = module_.instructions()[from].operands;
      for (uint32_t i = 0; i < operands.count; ++i) visit(module_.number(operands, i));
    });
  }
  if (other == kNone) {
    found.rung = Rung::kNothing;
    if (instruction.called.count != 0 && !is_control_flow(instruction.opcode))
      found.parts = inside(row, Known::kByName);
    if (found.parts.empty() && !instruction.op_name.empty()) found.parts.push_back(at(row, row, 1));
    return found;
  }
  found.parts.push_back(at(other, row, 1));
  return found;
}

}  // namespace leadline::xla
