#include "xla/origins.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "xla/opcodes.h"

namespace leadline::xla {
namespace {

constexpr size_t kFarthest = 256;  // instructions looked at for one without a stack

// The primitive at the end of a name such as jit(f)/scope/dot_general.
std::string_view primitive(std::string_view op_name) noexcept {
  const std::string_view first = op_name.substr(0, op_name.find(';'));
  return first.substr(first.rfind('/') + 1);
}

// What changes places of elements only, or hands them on.
bool hands_on(const Instruction& instruction) noexcept {
  return only_moves(instruction.opcode) || is_free(instruction.opcode) || instruction.opcode == "convert" ||
         instruction.opcode == "pad";
}

}  // namespace

OriginFinder::OriginFinder(const Module& module)
    : module_(module),
      users_(module.instructions().size()),
      parameters_(module.instructions().size()),
      arguments_(module.instructions().size()) {
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
      if (computation == kNone) continue;
      const Computation& body = module.computations()[computation];
      if (body.root != kNone) users_[body.root].push_back(row);
      if (instruction.opcode != "fusion" && instruction.opcode != "call") continue;
      // Its parameters are its arguments.
      for (uint32_t place = body.instructions.from; place < body.instructions.from + body.instructions.count; ++place) {
        const Instruction& inner = all[place];
        if (inner.opcode != "parameter" || inner.parameter < 0 || inner.parameter >= instruction.operands.count)
          continue;
        const uint32_t operand = module.number(instruction.operands, static_cast<uint32_t>(inner.parameter));
        if (operand == kNone) continue;
        parameters_[operand].push_back(place);
        arguments_[place].push_back(operand);
      }
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

// The first that is wanted, looking in ever wider circles, beyond those that it may pass.
template <typename Neighbours, typename Wanted, typename Passes>
uint32_t OriginFinder::nearest(uint32_t row, const Neighbours& neighbours, const Wanted& wanted,
                               const Passes& passes) const {
  std::vector<uint32_t> queue{row};
  std::unordered_set<uint32_t> seen{row};
  for (size_t next = 0; next < queue.size() && next < kFarthest; ++next) {
    const uint32_t at = queue[next];
    if (wanted(module_.instructions()[at])) return at;
    if (at != row && !passes(module_.instructions()[at])) continue;
    neighbours(at, [&](uint32_t other) {
      if (other != kNone && seen.insert(other).second) queue.push_back(other);
    });
  }
  return kNone;
}

// What only moves the result or the operands of an instruction and has a name and a stack that fit what it does.
uint32_t OriginFinder::moved(uint32_t row) const {
  const Instruction& computes = module_.instructions()[row];
  const auto wanted = [&](const Instruction& other) {
    return other.stack != 0 && (hands_on(other) || &other == &computes) &&
           does(computes.opcode, computes.custom_call_target, primitive(other.op_name));
  };
  const uint32_t after = nearest(
      row,
      [&](uint32_t from, const auto& visit) {
        for (const uint32_t user : users_[from]) visit(user);
        for (const uint32_t parameter : parameters_[from]) visit(parameter);
      },
      wanted, hands_on);
  if (after != kNone) return after;
  return nearest(
      row,
      [&](uint32_t from, const auto& visit) {
        const Range operands = module_.instructions()[from].operands;
        for (uint32_t i = 0; i < operands.count; ++i) visit(module_.number(operands, i));
        for (const uint32_t argument : arguments_[from]) visit(argument);
      },
      wanted, hands_on);
}

// The same for a fusion of nothing else, such as broadcasts of a constant: it computes nothing of its own.
bool OriginFinder::only_hands_on(uint32_t row) const {
  const std::vector<Instruction>& all = module_.instructions();
  if (all[row].opcode != "fusion") return hands_on(all[row]);
  for (uint32_t i = 0; i < all[row].called.count; ++i) {
    const uint32_t computation = module_.number(all[row].called, i);
    if (computation == kNone) return false;
    const Range body = module_.computations()[computation].instructions;
    if (!std::all_of(all.begin() + body.from, all.begin() + body.from + body.count, hands_on)) return false;
  }
  return true;
}

// Whose origin an instruction without a stack and a name has.
uint32_t OriginFinder::neighbour(uint32_t row, Rung* rung) const {
  *rung = Rung::kMoved;
  if (!only_hands_on(row)) return moved(row);
  const auto wanted = [](const Instruction& other) { return other.stack != 0; };
  const auto passes = [](const Instruction&) { return true; };
  *rung = Rung::kUser;
  const uint32_t user = nearest(
      row,
      [&](uint32_t from, const auto& visit) {
        for (const uint32_t other : users_[from]) visit(other);
      },
      wanted, passes);
  if (user != kNone) return user;
  *rung = Rung::kOperand;
  return nearest(
      row,
      [&](uint32_t from, const auto& visit) {
        const Range operands = module_.instructions()[from].operands;
        for (uint32_t i = 0; i < operands.count; ++i) visit(module_.number(operands, i));
      },
      wanted, passes);
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
  if (other == kNone) other = neighbour(row, &found.rung);
  if (other == kNone) {
    found.rung = Rung::kNothing;
    if (instruction.called.count != 0 && !is_control_flow(instruction.opcode))
      found.parts = inside(row, Known::kByName);
    if (found.parts.empty() && !instruction.op_name.empty()) found.parts.push_back(at(row, row, 1));
    return found;
  }
  found.parts.push_back(at(other, row, 1));
  if (found.rung == Rung::kMoved) found.parts.back().op_name = module_.instructions()[other].op_name;
  return found;
}

}  // namespace leadline::xla
