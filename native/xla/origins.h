// From an executed operation to the operations of the program that it was made from: which stacks, and how much of its
// time is whose.
//
// The ladder, where an instruction has no stack of its own: what it calls; another one with the same op_name (XLA joins
// names with ';' where it merges instructions, and lets the stack go); what only moves its result or its operands and
// is named after what it does (XLA rewrites a product of a vector as a product and a bitcast, and the bitcast keeps the
// name); for what only moves values, who uses its result, then its operands. An instruction that computes and that
// nothing says the origin of has none: its neighbours stand on lines of their own. Where frames were left out of a
// program altogether there are names without stacks. Inside a fusion the parts are weighed (weights.h).
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "xla/hlo.h"
#include "xla/weights.h"

namespace leadline::xla {

struct Origin {
  uint32_t instruction = kNone;  // whose stack and name these are
  uint32_t stack = 0;            // for Module::stack
  std::string_view op_name;
  std::string_view opcode;
  double share = 1;  // of the operation's time; those of all origins add up to 1
};

enum class Rung : uint8_t { kOwn, kInside, kSameName, kMoved, kUser, kOperand, kNothing };

struct Origins {
  Rung rung = Rung::kNothing;
  std::vector<Origin> parts;  // the heaviest first; empty where nothing is known
};

class OriginFinder {
 public:
  // The module must live as long.
  explicit OriginFinder(const Module& module);
  // `instruction`: a row of the module.
  Origins find(uint32_t instruction) const;

 private:
  std::vector<Origin> inside(uint32_t instruction, Known known) const;
  uint32_t same_name(std::string_view op_name) const;
  template <typename Neighbours, typename Wanted, typename Passes>
  uint32_t nearest(uint32_t instruction, const Neighbours& neighbours, const Wanted& wanted,
                   const Passes& passes) const;
  bool only_hands_on(uint32_t instruction) const;
  uint32_t moved(uint32_t instruction) const;
  uint32_t neighbour(uint32_t instruction, Rung* rung) const;
  Origin at(uint32_t instruction, uint32_t shown, double share) const;

  const Module& module_;
  std::unordered_map<std::string_view, uint32_t> by_op_name_;  // the first with a stack
  std::vector<std::vector<uint32_t>> users_;                   // of results
  std::vector<std::vector<uint32_t>> parameters_;              // of what is called, by their arguments
  std::vector<std::vector<uint32_t>> arguments_;               // by their parameters
};

}  // namespace leadline::xla
