#include "xla/weights.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "xla/opcodes.h"

namespace leadline::xla {
namespace {

constexpr double kAdditionsPerByte = 0.5;

// Of hostile files: computations that call themselves, or each other twice each.
constexpr int kDeepest = 16;
constexpr size_t kMostRows = 1 << 16;  // after which no further computation is begun

double size_of(const Instruction& instruction) noexcept {
  return instruction.elements > 0 ? static_cast<double>(instruction.bytes) / static_cast<double>(instruction.elements)
                                  : 0;
}

bool starts(std::string_view opcode, std::string_view with) noexcept { return opcode.substr(0, with.size()) == with; }

class Weighing {
 public:
  Weighing(const Module& module, Known known) : module_(module), all_(module.instructions()), known_(known) {}

  // What nobody could be given.
  struct Asked {
    double rest = 0;
    std::vector<double> of_parameters;  // elements, by number
  };

  // A computation of which this many elements of the result are asked for, `times` over. `outermost`: its parameters
  // and its result are memory.
  Asked computation(uint32_t row, double elements, double times, int depth, bool outermost);
  // All that the instruction calls.
  void called(uint32_t row);

  std::unordered_map<uint32_t, double> weight;

 private:
  // One computation on the way; places are rows from its first on.
  struct Body {
    Range rows;
    uint32_t root = kNone;
    std::vector<double> sum, most;  // elements asked for, of all users together and of the one that asks for most
    std::vector<double> own;        // weight
    std::vector<double> flow;       // sum of `asked` over the edges to those who use it
    std::vector<double> stored;     // bytes
    std::vector<bool> in_place;
  };
  struct Edge {
    uint32_t user = 0, operand = 0;
    double asked = 0;
  };

  const Instruction& at(const Body& body, uint32_t place) const { return all_[body.rows.from + place]; }
  uint32_t operand(const Body& body, uint32_t place, uint32_t position) const;
  bool from_memory(const Body& body, uint32_t place) const;
  uint32_t owner(const Body& body, uint32_t place) const;
  void store(Body& body, uint32_t place) const;
  double wanted(const Body& body, uint32_t place) const;
  double asked(const Body& body, uint32_t place, uint32_t position, double elements) const;
  double computed(const Body& body, uint32_t place, double elements) const;
  double applications(const Body& body, uint32_t place, double elements) const;
  double outside(const Body& body, uint32_t place) const;

  const Module& module_;
  const std::vector<Instruction>& all_;
  const Known known_;
  size_t rows_ = 0;
};

// Operands stand before who uses them; in a damaged file those that do not are none.
uint32_t Weighing::operand(const Body& body, uint32_t place, uint32_t position) const {
  const Range list = at(body, place).operands;
  const uint32_t row = position < list.count ? module_.number(list, position) : kNone;
  return row != kNone && row >= body.rows.from && row < body.rows.from + place ? row - body.rows.from : kNone;
}

// Whether a value is one of the fusion's arguments, seen as another shape or not.
bool Weighing::from_memory(const Body& body, uint32_t place) const {
  while (place != kNone && at(body, place).opcode != "parameter")
    place = is_free(at(body, place).opcode) ? operand(body, place, 0) : kNone;
  return place != kNone;
}

// The first known one, going down from one that hands on what it has and that nobody uses.
uint32_t Weighing::owner(const Body& body, uint32_t place) const {
  while (place != kNone && !is_known(at(body, place), known_)) place = operand(body, place, 0);
  return place;
}

// What is written where this value is a result.
void Weighing::store(Body& body, uint32_t place) const {
  std::vector<uint32_t> results{place};
  if (at(body, place).opcode == "tuple") {
    results.clear();
    for (uint32_t i = 0; i < at(body, place).operands.count; ++i) results.push_back(operand(body, place, i));
  }
  for (uint32_t result : results) {
    while (result != kNone && at(body, result).opcode == "bitcast") result = operand(body, result, 0);
    if (result == kNone) continue;
    const Instruction& made = at(body, result);
    uint32_t part = kNone;
    if (made.opcode == "dynamic-update-slice") part = operand(body, result, 1);
    if (made.opcode == "scatter") part = operand(body, result, made.operands.count - 1);
    body.in_place[result] = part != kNone && from_memory(body, operand(body, result, 0));
    body.stored[result] = static_cast<double>(body.in_place[result] ? at(body, part).bytes : made.bytes);
  }
}

// Elements of it that are computed: once for several who ask for the same, and as often as a window asks for them.
double Weighing::wanted(const Body& body, uint32_t place) const {
  return std::max(body.most[place], std::min(body.sum[place], static_cast<double>(at(body, place).elements)));
}

// How many elements of an operand are asked for, for so many elements of the result.
double Weighing::asked(const Body& body, uint32_t place, uint32_t position, double elements) const {
  const Instruction& user = at(body, place);
  const uint32_t from = operand(body, place, position);
  if (from == kNone || elements <= 0) return 0;
  const auto all = static_cast<double>(at(body, from).elements);
  const std::string_view opcode = user.opcode;
  if (body.in_place[place] && position == 0) return 0;
  if (all <= 1) return all;
  const double part = elements / std::max(static_cast<double>(user.elements), 1.0);
  if (opcode == "broadcast") return std::min(all, elements);
  if (opcode == "slice" || opcode == "dynamic-slice" || opcode == "gather" || opcode == "get-tuple-element")
    return position == 0 ? elements : all * part;
  if (opcode == "dynamic-update-slice") return position == 0 ? elements : all;
  if (opcode == "reduce-window") return elements * static_cast<double>(user.window);
  if (opcode == "dot" || opcode == "convolution" || opcode == "scatter" || opcode == "sort" ||
      opcode == "select-and-scatter")
    return all;
  return all * part;
}

// How often an operation runs the function that it calls.
double Weighing::applications(const Body& body, uint32_t place, double elements) const {
  const Instruction& instruction = at(body, place);
  const uint32_t first = operand(body, place, 0);
  const double read = first == kNone ? elements : static_cast<double>(at(body, first).elements);
  const auto window = static_cast<double>(instruction.window);
  if (instruction.opcode == "reduce") {
    return read * std::min(elements / std::max(static_cast<double>(instruction.elements), 1.0), 1.0);
  }
  if (instruction.opcode == "reduce-window") {  // of several arrays together: each has its element of the result
    const double results = std::max(std::floor(instruction.operands.count / 2.0), 1.0);
    return elements / results * window;
  }
  if (instruction.opcode == "select-and-scatter") {
    const uint32_t source = operand(body, place, 1);
    return (source == kNone ? elements : static_cast<double>(at(body, source).elements)) * window;
  }
  if (instruction.opcode == "scatter") {
    const uint32_t updates = operand(body, place, instruction.operands.count - 1);
    return updates == kNone ? elements : static_cast<double>(at(body, updates).elements);
  }
  if (instruction.opcode == "sort") return read * std::log2(read + 1);
  return elements;
}

// Additions for so many elements of the result, without what is called.
double Weighing::computed(const Body& body, uint32_t place, double elements) const {
  const Instruction& instruction = at(body, place);
  const auto sized = [&](uint32_t position) {
    const uint32_t found = operand(body, place, position);
    return found == kNone ? nullptr : &at(body, found);
  };
  const auto length = [&](const Instruction& of, int64_t dimension) {
    if (dimension < 0 || dimension >= of.dimensions.count) return 1.0;
    return static_cast<double>(module_.wide(of.dimensions, static_cast<uint32_t>(dimension)));
  };
  double each = additions(instruction.opcode, instruction.whole_numbers);
  const Instruction* left = sized(0);
  const Instruction* right = sized(1);
  if (body.in_place[place]) {
    each = 0;
  } else if (instruction.opcode == "dot" && left != nullptr) {
    each = 2;
    for (uint32_t i = 0; i < instruction.contracted.count; ++i)
      each *= length(*left, module_.wide(instruction.contracted, i));
  } else if (instruction.opcode == "convolution" && right != nullptr) {
    const double outputs = std::max(length(*right, instruction.kernel_outputs), 1.0);
    each = 2 * static_cast<double>(right->elements) / outputs;
  }
  return elements * each * std::max(size_of(instruction) / 4, 1.0);
}

// Additions that take as long as the bytes that cross the border of the fusion here.
double Weighing::outside(const Body& body, uint32_t place) const {
  const Instruction& instruction = at(body, place);
  const bool memory =
      instruction.opcode == "parameter" || (instruction.opcode == "constant" && instruction.elements > 1);
  const double read = memory ? std::min(wanted(body, place), static_cast<double>(instruction.elements)) : 0;
  return kAdditionsPerByte * (read * size_of(instruction) + body.stored[place]);
}

Weighing::Asked Weighing::computation(uint32_t row, double elements, double times, int depth, bool outermost) {
  Asked result;
  const Computation& computation = module_.computations()[row];
  Body body;
  body.rows = computation.instructions;
  const uint32_t count = body.rows.count;
  if (rows_ > kMostRows) return result;
  rows_ += count + 1;
  if (depth > kDeepest || computation.root < body.rows.from || computation.root - body.rows.from >= count)
    return result;
  body.root = computation.root - body.rows.from;
  for (auto* column : {&body.sum, &body.most, &body.own, &body.flow, &body.stored}) column->resize(count);
  body.in_place.resize(count);
  if (outermost) store(body, body.root);
  body.sum[body.root] = body.most[body.root] = elements;

  // From the result down: what is asked for, and what that costs.
  std::vector<Edge> edges;
  for (uint32_t place = count; place-- > 0;) {
    const Instruction& instruction = at(body, place);
    const double asked_for = wanted(body, place);
    if (is_known(instruction, known_)) weight.try_emplace(body.rows.from + place, 0.0);
    if (asked_for <= 0 && body.stored[place] <= 0) continue;
    if (outermost) body.own[place] = outside(body, place);
    if (instruction.opcode == "parameter" && instruction.parameter >= 0 &&
        static_cast<uint64_t>(instruction.parameter) < count) {
      const auto number = static_cast<size_t>(instruction.parameter);
      if (result.of_parameters.size() <= number) result.of_parameters.resize(number + 1);
      result.of_parameters[number] = asked_for;
    }
    const bool whole = instruction.opcode == "fusion" || instruction.opcode == "call";
    Asked inner;
    for (uint32_t i = 0; i < instruction.called.count && rows_ <= kMostRows; ++i) {
      const uint32_t other = module_.number(instruction.called, i);
      if (other == kNone) continue;
      if (whole) {
        inner = this->computation(other, asked_for, times, depth + 1, false);
        body.own[place] += times > 0 ? inner.rest / times : 0;
      } else {
        const double runs = applications(body, place, asked_for);
        const uint32_t root = module_.computations()[other].root;
        const double once = root == kNone ? 1 : static_cast<double>(all_[root].elements);
        const Asked reducer = this->computation(other, once, times * runs, depth + 1, false);
        body.own[place] += times > 0 ? reducer.rest / times : 0;
      }
    }
    if (instruction.called.count == 0) body.own[place] += computed(body, place, asked_for);
    for (uint32_t position = 0; position < instruction.operands.count; ++position) {
      const uint32_t from = operand(body, place, position);
      if (from == kNone) continue;
      double asks = asked(body, place, position, asked_for);
      if (whole) asks = position < inner.of_parameters.size() ? inner.of_parameters[position] : 0;
      body.sum[from] += asks;
      body.most[from] = std::max(body.most[from], asks);
      if (place == body.root && instruction.opcode == "tuple") continue;  // takes nothing over
      body.flow[from] += asks;
      edges.push_back({place, from, asks});
    }
  }

  // From the arguments up: what nobody is known of goes to its users.
  auto edge = edges.rbegin();
  for (uint32_t place = 0; place < count; ++place) {
    for (; edge != edges.rend() && edge->user == place; ++edge) {
      const bool hands_on = !is_known(at(body, edge->operand), known_);
      if (hands_on && edge->asked > 0)
        body.own[place] += body.own[edge->operand] * edge->asked / body.flow[edge->operand];
    }
    uint32_t to = place;
    if (!is_known(at(body, place), known_)) {
      if (body.flow[place] > 0) continue;
      to = owner(body, place);
    }
    const double given = body.own[place] * times;
    if (to == kNone) {
      result.rest += given;
    } else {
      weight[body.rows.from + to] += given;
    }
  }
  return result;
}

void Weighing::called(uint32_t row) {
  const Instruction& instruction = all_[row];
  // Of an operation alone that runs a function for each element, all work is what that does.
  const bool memory = instruction.opcode == "fusion" || starts(instruction.opcode, "async");
  for (uint32_t i = 0; i < instruction.called.count && rows_ <= kMostRows; ++i) {
    const uint32_t other = module_.number(instruction.called, i);
    const uint32_t root = other == kNone ? kNone : module_.computations()[other].root;
    if (root == kNone) continue;
    computation(other, static_cast<double>(all_[root].elements), 1, 0, memory);
  }
}

}  // namespace

bool is_known(const Instruction& instruction, Known known) noexcept {
  return !is_free(instruction.opcode) &&
         (known == Known::kByStack ? instruction.stack != 0 : !instruction.op_name.empty());
}

std::vector<std::pair<uint32_t, double>> weights(const Module& module, uint32_t row, Known known) {
  Weighing weighing(module, known);
  weighing.called(row);
  std::vector<std::pair<uint32_t, double>> found(weighing.weight.begin(), weighing.weight.end());
  std::sort(found.begin(), found.end());
  for (auto& [instruction, weight] : found)
    if (!std::isfinite(weight)) weight = 0;
  return found;
}

}  // namespace leadline::xla
