#include "xla/origins.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

namespace leadline::xla {
namespace {

constexpr size_t kFarthest = 256;  // instructions looked at for one without a stack
constexpr double kBytesPerElement = 4;
constexpr double kCostly = 8;

template <size_t kCount>
bool one_of(std::string_view word, const std::string_view (&words)[kCount]) noexcept {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

bool is_costly(std::string_view opcode) noexcept {
  static constexpr std::string_view kWords[] = {"exponential", "exponential-minus-one",
                                                "log",         "log-plus-one",
                                                "power",       "tanh",
                                                "logistic",    "erf",
                                                "sine",        "cosine",
                                                "tan",         "atan2",
                                                "cbrt",        "rsqrt",
                                                "sqrt",        "divide",
                                                "remainder"};
  return one_of(opcode, kWords);
}

bool only_moves(std::string_view opcode) noexcept {
  static constexpr std::string_view kWords[] = {
      "broadcast",      "iota",        "reshape", "transpose",     "copy",    "slice",
      "gather",         "concatenate", "pad",     "dynamic-slice", "reverse", "dynamic-update-slice",
      "dynamic-reshape"};
  return one_of(opcode, kWords);
}

bool reads_a_part(std::string_view opcode) noexcept {
  return opcode == "slice" || opcode == "dynamic-slice" || opcode == "gather" || opcode == "dynamic-update-slice";
}

}  // namespace

bool is_free(std::string_view opcode) noexcept {
  static constexpr std::string_view kWords[] = {"parameter",    "constant",  "tuple",  "get-tuple-element",
                                                "bitcast",      "after-all", "domain", "add-dependency",
                                                "partition-id", "replica-id"};
  return one_of(opcode, kWords);
}

bool is_control_flow(std::string_view opcode) noexcept {
  return opcode == "while" || opcode == "conditional" || opcode == "call" || opcode == "async-start";
}

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

double OriginFinder::weight(uint32_t row) const {
  const std::vector<Instruction>& all = module_.instructions();
  const Instruction& instruction = all[row];
  const auto elements = static_cast<double>(instruction.elements);
  const auto operand = [&](uint32_t at) {
    const uint32_t found = at < instruction.operands.count ? module_.number(instruction.operands, at) : kNone;
    return found == kNone ? nullptr : &all[found];
  };
  double work = elements;
  const Instruction* first = operand(0);
  if (instruction.opcode == "dot" && first != nullptr) {
    double summed = 1;
    for (uint32_t i = 0; i < instruction.contracted.count; ++i) {
      const int64_t dimension = module_.wide(instruction.contracted, i);
      if (dimension >= 0 && dimension < first->dimensions.count)
        summed *= static_cast<double>(module_.wide(first->dimensions, static_cast<uint32_t>(dimension)));
    }
    work = 2 * elements * summed;
  } else if (instruction.opcode == "convolution" && operand(1) != nullptr) {
    const Instruction& kernel = *operand(1);
    double outputs = 1;
    if (instruction.kernel_outputs >= 0 && instruction.kernel_outputs < kernel.dimensions.count)
      outputs = static_cast<double>(module_.wide(kernel.dimensions, static_cast<uint32_t>(instruction.kernel_outputs)));
    work = 2 * elements * static_cast<double>(kernel.elements) / std::max(outputs, 1.0);
  } else if ((instruction.opcode == "reduce" || instruction.opcode == "reduce-window") && first != nullptr) {
    work = std::max(elements, static_cast<double>(first->elements));
  } else if (instruction.opcode == "sort") {
    work = elements * std::log2(elements + 2);
  } else if (is_costly(instruction.opcode)) {
    work = kCostly * elements;
  } else if (only_moves(instruction.opcode)) {
    work = elements / kBytesPerElement;
  }
  double moved = 0;
  for (uint32_t i = 0; i < instruction.operands.count; ++i) {
    const Instruction* from = operand(i);
    if (from == nullptr || from->opcode != "parameter") continue;
    const auto readers =
        static_cast<double>(std::max<size_t>(users_[module_.number(instruction.operands, i)].size(), 1));
    const auto whole = static_cast<double>(from->bytes) / readers;
    moved += reads_a_part(instruction.opcode) ? std::min(whole, static_cast<double>(instruction.bytes)) : whole;
  }
  if (module_.computations()[instruction.computation].root == row) moved += static_cast<double>(instruction.bytes);
  return work + moved / kBytesPerElement;
}

Origin OriginFinder::at(uint32_t row, uint32_t shown, double share) const {
  const Instruction& instruction = module_.instructions()[row];
  const Instruction& name = module_.instructions()[shown];
  return {row, instruction.stack, name.op_name.empty() ? instruction.op_name : name.op_name, name.opcode, share};
}

// The parts of what an instruction calls that have a stack, one for each stack and name: the heaviest stands for all.
// `without`: in a program whose frames were left out, those that have a name at least.
std::vector<Origin> OriginFinder::inside(uint32_t row, bool without) const {
  std::vector<Origin> parts;
  std::unordered_set<uint32_t> seen;
  std::vector<Range> lists{module_.instructions()[row].called};
  while (!lists.empty()) {
    const Range list = lists.back();
    lists.pop_back();
    for (uint32_t i = 0; i < list.count; ++i) {
      const uint32_t computation = module_.number(list, i);
      if (computation == kNone || !seen.insert(computation).second) continue;
      const Range range = module_.computations()[computation].instructions;
      for (uint32_t inner = range.from; inner < range.from + range.count; ++inner) {
        const Instruction& instruction = module_.instructions()[inner];
        if (instruction.called.count != 0) lists.push_back(instruction.called);
        const bool known = without ? !instruction.op_name.empty() : instruction.stack != 0;
        if (!known || is_free(instruction.opcode)) continue;
        parts.push_back(at(inner, inner, weight(inner)));
      }
    }
  }
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
    if (fused || instruction.stack == 0) found.parts = inside(row, false);
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
    if (instruction.called.count != 0 && !is_control_flow(instruction.opcode)) found.parts = inside(row, true);
    if (found.parts.empty() && !instruction.op_name.empty()) found.parts.push_back(at(row, row, 1));
    return found;
  }
  found.parts.push_back(at(other, row, 1));
  return found;
}

}  // namespace leadline::xla
