// A compiled program of XLA, from its HloModuleProto. Field numbers as in xla/service/hlo.proto, unchanged from jaxlib
// 0.4.38 to 0.12 and TensorFlow 2.18 to 2.21.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace leadline::xla {

// A range of a vector that holds the lists of all.
struct Range {
  uint32_t from = 0;
  uint32_t count = 0;
};

struct SourceFrame {
  std::string_view file;
  std::string_view function;
  int32_t line = 0;
  friend bool operator==(const SourceFrame&, const SourceFrame&) = default;
};

constexpr uint32_t kNone = UINT32_MAX;

struct Instruction {
  std::string_view name;
  std::string_view opcode;
  std::string_view op_name;  // scopes, transforms and primitive of the framework
  std::string_view custom_call_target;
  uint32_t computation = 0;  // its place in Module::computations
  int64_t id = 0;
  uint32_t stack = 0;    // 1-based in the module's table; 0: none
  int64_t elements = 0;  // of the result, all parts of a tuple together
  int64_t bytes = 0;
  Range dimensions;             // of the result; of a tuple: none
  Range operands;               // rows of Module::instructions, kNone for what is not there
  Range called;                 // rows of Module::computations
  Range contracted;             // dimensions of the left operand that a dot sums over
  int64_t parameter = 0;        // its number among those of the computation
  int64_t kernel_outputs = -1;  // convolution: the dimension of the kernel that holds its output features
  int64_t window = 1;           // elements of the window that it slides over its operand
  bool whole_numbers = false;   // whether the result is of integers
};

struct Computation {
  std::string_view name;
  Range instructions;
  Range scheduled;  // rows of Module::instructions in the order in which they run; none where the program does not say
  uint32_t root = kNone;
  int64_t id = 0;
};

struct Parameter {
  std::string name;   // as the program calls it, empty where it does not say
  std::string shape;  // f32[8,4]
};

class Module {
 public:
  // `problem`: a sentence where the bytes are no module; then the module is empty.
  explicit Module(std::string bytes, std::string* problem);
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  std::string_view name() const noexcept { return name_; }
  int64_t id() const noexcept { return id_; }
  const std::vector<Instruction>& instructions() const noexcept { return instructions_; }
  const std::vector<Computation>& computations() const noexcept { return computations_; }
  const std::vector<Parameter>& parameters() const noexcept { return parameters_; }
  uint32_t aliases() const noexcept { return aliases_; }  // results that take the place of a donated argument
  bool has_stacks() const noexcept { return !stacks_.empty(); }
  uint32_t entry() const noexcept { return entry_; }
  const std::vector<std::string_view>& files() const noexcept { return files_; }  // of all stacks

  // Row of the instruction of that name, kNone for none. XLA gives a name once in a module.
  uint32_t find(std::string_view name) const noexcept;
  // Outermost first. A frame that inlining has put in twice stands where it is nearest to the operation.
  std::vector<SourceFrame> stack(uint32_t stack) const;

  uint32_t number(Range list, uint32_t at) const noexcept { return lists_[list.from + at]; }
  int64_t wide(Range list, uint32_t at) const noexcept { return wides_[list.from + at]; }

 private:
  struct Location {
    uint32_t file = 0;
    uint32_t function = 0;
    int32_t line = 0;
    int32_t column = 0;
  };
  struct Stack {
    uint32_t location = 0;
    uint32_t parent = 0;
  };
  // Where an instruction itself says that it stands.
  struct Source {
    std::string_view file;
    int32_t line = 0;
    int32_t column = 0;
  };
  struct Shape;
  class StackFinder;

  bool read();
  bool read_computation(std::string_view bytes);
  bool read_instruction(std::string_view bytes, uint32_t computation);
  bool read_schedule(std::string_view bytes);
  bool read_shape(std::string_view bytes, Shape* shape, int depth);
  bool read_stacks(std::string_view bytes);
  bool read_program_shape(std::string_view bytes);
  std::string shape_text(std::string_view bytes, int depth);
  void join();
  void settle_stacks();
  bool knows(const Source& source) const noexcept;
  bool stands_at(uint32_t stack, const Source& source) const noexcept;
  Range keep(const std::vector<int64_t>& values);

  std::string bytes_;
  std::string_view name_;
  int64_t id_ = 0;
  int64_t entry_id_ = 0;
  uint32_t entry_ = kNone;
  uint32_t aliases_ = 0;
  std::vector<Instruction> instructions_;
  std::vector<Computation> computations_;
  std::vector<Parameter> parameters_;
  std::vector<uint32_t> lists_;
  std::vector<int64_t> wides_;
  std::vector<std::string_view> files_, functions_;
  std::vector<Location> locations_;
  std::vector<Stack> stacks_;
  std::vector<Source> sources_;  // of all instructions, until stacks are settled
  std::vector<int64_t> root_ids_;
  std::unordered_map<int64_t, Range> schedule_;  // by computation, until ids are joined
  std::unordered_map<std::string_view, uint32_t> by_name_;
};

}  // namespace leadline::xla
