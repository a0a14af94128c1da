#include "xla/hlo.h"

#include <algorithm>
#include <array>
#include <utility>

#include "xla/wire.h"

namespace leadline::xla {
namespace {

constexpr int kDeepestShape = 64;

struct ElementType {
  const char* name;
  int64_t bits;
};

// xla::PrimitiveType by its number.
constexpr std::array<ElementType, 34> kElementTypes = {{
    {"?", 0},          {"pred", 8},       {"s8", 8},       {"s16", 16},      {"s32", 32},   {"s64", 64},
    {"u8", 8},         {"u16", 16},       {"u32", 32},     {"u64", 64},      {"f16", 16},   {"f32", 32},
    {"f64", 64},       {"tuple", 0},      {"opaque", 0},   {"c64", 64},      {"bf16", 16},  {"token", 0},
    {"c128", 128},     {"f8e5m2", 8},     {"f8e4m3fn", 8}, {"s4", 4},        {"u4", 4},     {"f8e4m3b11fnuz", 8},
    {"f8e5m2fnuz", 8}, {"f8e4m3fnuz", 8}, {"s2", 2},       {"u2", 2},        {"f8e4m3", 8}, {"f8e3m4", 8},
    {"s1", 1},         {"u1", 1},         {"f4e2m1fn", 4}, {"f8e8m0fnu", 8},
}};

ElementType element_type(uint64_t number) noexcept {
  return number < kElementTypes.size() ? kElementTypes[number] : kElementTypes[0];
}

// Sums and products of sizes that a file gives: at the border they stay.
int64_t product(int64_t a, int64_t b) noexcept {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? INT64_MAX : result;
}
int64_t sum(int64_t a, int64_t b) noexcept {
  int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? INT64_MAX : result;
}

int32_t positive(uint64_t number) noexcept { return static_cast<int32_t>(std::min<uint64_t>(number, INT32_MAX)); }

}  // namespace

struct Module::Shape {
  int64_t elements = 0;
  int64_t bytes = 0;
  std::vector<int64_t> dimensions;
  bool whole_numbers = false;
};

Module::Module(std::string bytes, std::string* problem) : bytes_(std::move(bytes)) {
  if (read()) {
    join();
    settle_stacks();
    return;
  }
  *problem = "These bytes are no compiled program of XLA, or they are damaged.";
  instructions_.clear();
  computations_.clear();
  parameters_.clear();
  stacks_.clear();
}

bool Module::read() {
  Wire wire(bytes_);
  Field field;
  std::string_view program_shape;
  while (wire.next(&field)) {
    bool good = true;
    if (field.is(1, 2)) {
      name_ = field.bytes;
    } else if (field.is(3, 2)) {
      good = read_computation(field.bytes);
    } else if (field.is(4, 2)) {
      program_shape = field.bytes;
    } else if (field.is(5, 0)) {
      id_ = field.integer();
    } else if (field.is(6, 0)) {
      entry_id_ = field.integer();
    } else if (field.is(7, 2)) {
      good = read_schedule(field.bytes);
    } else if (field.is(8, 2)) {
      Wire alias(field.bytes);
      Field entry;
      while (alias.next(&entry)) aliases_ += entry.is(1, 2) ? 1 : 0;
      good = alias.ok();
    } else if (field.is(17, 2)) {
      good = read_stacks(field.bytes);
    }
    if (!good) return false;
  }
  return wire.ok() && (program_shape.empty() || read_program_shape(program_shape));
}

bool Module::read_computation(std::string_view bytes) {
  const auto row = static_cast<uint32_t>(computations_.size());
  Computation computation;
  int64_t root_id = -1;
  computation.instructions.from = static_cast<uint32_t>(instructions_.size());
  Wire wire(bytes);
  Field field;
  while (wire.next(&field)) {
    if (field.is(1, 2)) computation.name = field.bytes;
    if (field.is(2, 2) && !read_instruction(field.bytes, row)) return false;
    if (field.is(5, 0)) computation.id = field.integer();
    if (field.is(6, 0)) root_id = field.integer();
  }
  computation.instructions.count = static_cast<uint32_t>(instructions_.size()) - computation.instructions.from;
  computations_.push_back(computation);
  root_ids_.push_back(root_id);
  return wire.ok();
}

Range Module::keep(const std::vector<int64_t>& values) {
  const Range range{static_cast<uint32_t>(wides_.size()), static_cast<uint32_t>(values.size())};
  wides_.insert(wides_.end(), values.begin(), values.end());
  return range;
}

bool Module::read_instruction(std::string_view bytes, uint32_t computation) {
  Instruction instruction;
  instruction.computation = computation;
  Source source;
  std::vector<int64_t> operands;
  std::vector<int64_t> called;
  std::vector<int64_t> contracted;
  Shape shape;
  Wire wire(bytes);
  Field field;
  bool good = true;
  while (good && wire.next(&field)) {
    switch (field.number) {
      case 1:
        instruction.name = field.bytes;
        break;
      case 2:
        instruction.opcode = field.bytes;
        break;
      case 3:
        good = field.wire == 2 && read_shape(field.bytes, &shape, 0);
        break;
      case 7: {
        Wire metadata(field.bytes);
        Field part;
        while (metadata.next(&part)) {
          if (part.is(2, 2)) instruction.op_name = part.bytes;
          if (part.is(3, 2)) source.file = part.bytes;
          if (part.is(4, 0)) source.line = positive(part.value);
          if (part.is(18, 0)) source.column = positive(part.value);
          if (part.is(15, 0)) instruction.stack = static_cast<uint32_t>(std::min<uint64_t>(part.value, kNone));
        }
        good = metadata.ok();
        break;
      }
      case 9:
        instruction.parameter = field.integer();
        break;
      case 15: {  // Window
        Wire window(field.bytes);
        Field dimension;
        while (good && window.next(&dimension)) {
          if (!dimension.is(1, 2)) continue;
          Wire part(dimension.bytes);
          Field size;
          while (part.next(&size)) {
            if (size.is(1, 0)) instruction.window = product(instruction.window, std::max<int64_t>(size.integer(), 1));
          }
          good = part.ok();
        }
        good = good && window.ok();
        break;
      }
      case 16: {  // ConvolutionDimensionNumbers
        Wire numbers(field.bytes);
        Field part;
        instruction.kernel_outputs = 0;
        while (numbers.next(&part)) {
          if (part.is(4, 0)) instruction.kernel_outputs = part.integer();
        }
        good = numbers.ok();
        break;
      }
      case 28:
        instruction.custom_call_target = field.bytes;
        break;
      case 30: {  // DotDimensionNumbers
        Wire numbers(field.bytes);
        Field part;
        while (good && numbers.next(&part)) {
          if (part.number == 1) good = integers(part, [&](int64_t value) { contracted.push_back(value); });
        }
        good = good && numbers.ok();
        break;
      }
      case 35:
        instruction.id = field.integer();
        break;
      case 36:
        good = integers(field, [&](int64_t value) { operands.push_back(value); });
        break;
      case 38:
        good = integers(field, [&](int64_t value) { called.push_back(value); });
        break;
      default:
        break;
    }
  }
  if (!good || !wire.ok()) return false;
  instruction.elements = shape.elements;
  instruction.bytes = shape.bytes;
  instruction.whole_numbers = shape.whole_numbers;
  instruction.dimensions = keep(shape.dimensions);
  instruction.operands = keep(operands);
  instruction.called = keep(called);
  instruction.contracted = keep(contracted);
  instructions_.push_back(instruction);
  sources_.push_back(source);
  return true;
}

// HloScheduleProto: a map from computations to the ids of their instructions.
bool Module::read_schedule(std::string_view bytes) {
  Wire wire(bytes);
  Field field;
  bool good = true;
  while (good && wire.next(&field)) {
    if (!field.is(1, 2)) continue;
    int64_t computation = 0;
    std::vector<int64_t> ids;
    Wire entry(field.bytes);
    Field part;
    while (good && entry.next(&part)) {
      if (part.is(1, 0)) computation = part.integer();
      if (!part.is(2, 2)) continue;
      Wire sequence(part.bytes);
      Field one;
      while (good && sequence.next(&one)) {
        if (one.number == 1) good = integers(one, [&](int64_t id) { ids.push_back(id); });
      }
      good = good && sequence.ok();
    }
    good = good && entry.ok();
    schedule_[computation] = keep(ids);
  }
  return good && wire.ok();
}

bool Module::read_shape(std::string_view bytes, Shape* shape, int depth) {
  if (depth > kDeepestShape) return false;
  uint64_t type = 0;
  int64_t elements = 1;
  bool tuple = false;
  std::vector<int64_t> dimensions;
  Wire wire(bytes);
  Field field;
  bool good = true;
  while (good && wire.next(&field)) {
    if (field.is(2, 0)) type = field.value;
    if (field.number == 3)
      good = integers(field, [&](int64_t value) { dimensions.push_back(std::max<int64_t>(value, 0)); });
    if (field.is(4, 2)) {
      tuple = true;
      good = read_shape(field.bytes, shape, depth + 1);
    }
  }
  if (!good || !wire.ok()) return false;
  if (tuple || element_type(type).bits == 0) return true;
  for (const int64_t dimension : dimensions) elements = product(elements, dimension);
  shape->elements = sum(shape->elements, elements);
  shape->bytes = sum(shape->bytes, sum(product(elements, element_type(type).bits), 7) / 8);
  if (depth == 0) shape->dimensions = std::move(dimensions);
  const char first = *element_type(type).name;
  shape->whole_numbers = first == 's' || first == 'u';
  return true;
}

std::string Module::shape_text(std::string_view bytes, int depth) {
  if (depth > kDeepestShape) return "?";
  uint64_t type = 0;
  std::string dimensions;
  std::string parts;
  bool tuple = false;
  Wire wire(bytes);
  Field field;
  while (wire.next(&field)) {
    if (field.is(2, 0)) type = field.value;
    if (field.number == 3) {
      integers(field, [&](int64_t value) {
        if (!dimensions.empty()) dimensions += ',';
        dimensions += std::to_string(value);
      });
    }
    if (field.is(4, 2)) {
      if (tuple) parts += ", ";
      tuple = true;
      parts += shape_text(field.bytes, depth + 1);
    }
  }
  return tuple ? "(" + parts + ")" : element_type(type).name + ("[" + dimensions + "]");
}

bool Module::read_program_shape(std::string_view bytes) {
  Wire wire(bytes);
  Field field;
  size_t named = 0;
  while (wire.next(&field)) {
    if (field.is(1, 2)) {
      parameters_.emplace_back();
      parameters_.back().shape = shape_text(field.bytes, 0);
    }
    if (field.is(3, 2) && named < parameters_.size()) parameters_[named++].name = field.bytes;
  }
  return wire.ok();
}

// Ids become rows.
void Module::join() {
  std::unordered_map<int64_t, uint32_t> instruction_rows;
  std::unordered_map<int64_t, uint32_t> computation_rows;
  for (uint32_t row = 0; row < instructions_.size(); ++row) {
    instruction_rows.emplace(instructions_[row].id, row);
    by_name_.emplace(instructions_[row].name, row);
  }
  for (uint32_t row = 0; row < computations_.size(); ++row) computation_rows.emplace(computations_[row].id, row);
  const auto rows = [this](const std::unordered_map<int64_t, uint32_t>& known, Range ids) {
    const Range list{static_cast<uint32_t>(lists_.size()), ids.count};
    for (uint32_t at = 0; at < ids.count; ++at) {
      const auto found = known.find(wide(ids, at));
      lists_.push_back(found == known.end() ? kNone : found->second);
    }
    return list;
  };
  for (Instruction& instruction : instructions_) {
    instruction.operands = rows(instruction_rows, instruction.operands);
    instruction.called = rows(computation_rows, instruction.called);
  }
  for (size_t row = 0; row < computations_.size(); ++row) {
    const auto root = instruction_rows.find(root_ids_[row]);
    if (root != instruction_rows.end()) computations_[row].root = root->second;
    const auto scheduled = schedule_.find(computations_[row].id);
    if (scheduled != schedule_.end()) computations_[row].scheduled = rows(instruction_rows, scheduled->second);
  }
  schedule_.clear();
  const auto entry = computation_rows.find(entry_id_);
  if (entry == computation_rows.end()) return;
  entry_ = entry->second;
  // Parameters are called as the program calls them where the framework says so in their metadata.
  const Range range = computations_[entry_].instructions;
  for (uint32_t row = range.from; row < range.from + range.count; ++row) {
    const Instruction& instruction = instructions_[row];
    if (instruction.opcode != "parameter" || instruction.op_name.empty() || instruction.parameter < 0) continue;
    const auto number = static_cast<uint64_t>(instruction.parameter);
    if (number < parameters_.size()) parameters_[number].name = instruction.op_name;
  }
}

uint32_t Module::find(std::string_view name) const noexcept {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? kNone : found->second;
}

}  // namespace leadline::xla
