// The table of stacks of a program, and which of them an instruction has.
//
// XLA numbers stacks anew when it partitions a program for several devices. jaxlib 0.8 leaves instructions the numbers
// of the table before, so that they lead to other lines; each says its innermost line beside the number there, which
// tells that it happened, and finds the stack: the one of the table that ends on this line, or what all those have in
// common.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "xla/hlo.h"
#include "xla/wire.h"

namespace leadline::xla {
namespace {

constexpr size_t kLongestStack = 4096;
constexpr size_t kMostAlike = 256;  // stacks that end on one line; of more only that line is kept

}  // namespace

bool Module::read_stacks(std::string_view bytes) {
  Wire wire(bytes);
  Field field;
  while (wire.next(&field)) {
    if (field.is(1, 2)) files_.push_back(field.bytes);
    if (field.is(2, 2)) functions_.push_back(field.bytes);
    if (field.number != 3 && field.number != 4) continue;
    if (field.wire != 2) return false;
    Wire part(field.bytes);
    Field value;
    uint64_t values[4] = {0, 0, 0, 0};
    while (part.next(&value)) {
      if (value.wire == 0 && value.number >= 1 && value.number <= 4) values[value.number - 1] = value.value;
    }
    if (!part.ok()) return false;
    const auto small = [](uint64_t number) { return static_cast<uint32_t>(std::min<uint64_t>(number, kNone)); };
    const auto place = [](uint64_t number) { return static_cast<int32_t>(std::min<uint64_t>(number, INT32_MAX)); };
    if (field.number == 3) {
      locations_.push_back({small(values[0]), small(values[1]), place(values[2]), place(values[3])});
    } else {
      stacks_.push_back({small(values[0]), small(values[1])});
    }
  }
  return wire.ok();
}

std::vector<SourceFrame> Module::stack(uint32_t stack) const {
  std::vector<SourceFrame> frames;
  for (size_t steps = 0; stack != 0 && stack <= stacks_.size() && steps < kLongestStack; ++steps) {
    const Stack& at = stacks_[stack - 1];
    stack = at.parent;
    if (at.location == 0 || at.location > locations_.size()) continue;
    const Location& location = locations_[at.location - 1];
    SourceFrame frame;
    frame.line = location.line;
    if (location.file != 0 && location.file <= files_.size()) frame.file = files_[location.file - 1];
    if (location.function != 0 && location.function <= functions_.size())
      frame.function = functions_[location.function - 1];
    if (std::find(frames.begin(), frames.end(), frame) == frames.end()) frames.push_back(frame);
  }
  std::reverse(frames.begin(), frames.end());
  return frames;
}

// Whether the table has lines of this file at all: else it may be written otherwise, and tells nothing.
bool Module::knows(const Source& source) const noexcept {
  return source.line != 0 && std::find(files_.begin(), files_.end(), source.file) != files_.end();
}

bool Module::stands_at(uint32_t stack, const Source& source) const noexcept {
  if (stack > stacks_.size()) return false;
  const uint32_t at = stacks_[stack - 1].location;
  if (at == 0 || at > locations_.size()) return false;
  const Location& location = locations_[at - 1];
  return location.line == source.line && location.file != 0 && location.file <= files_.size() &&
         files_[location.file - 1] == source.file;
}

// From the innermost line to its stack.
class Module::StackFinder {
 public:
  explicit StackFinder(Module* module) : module_(*module) {
    for (uint32_t stack = 1; stack <= module_.stacks_.size(); ++stack) {
      const uint32_t at = module_.stacks_[stack - 1].location;
      if (at == 0 || at > module_.locations_.size()) continue;
      const Location& location = module_.locations_[at - 1];
      if (location.file != 0 && location.file <= module_.files_.size())
        ending_[{module_.files_[location.file - 1], location.line}].push_back(stack);
    }
  }

  uint32_t find(const Source& source) {
    const auto [known, is_new] = found_.try_emplace({source.file, source.line, source.column}, 0);
    if (is_new) known->second = look_for(source);
    return known->second;
  }

 private:
  uint32_t look_for(const Source& source) {
    const auto ending = ending_.find({source.file, source.line});
    if (ending == ending_.end()) return add(line_alone(source), 0);
    std::vector<uint32_t> alike;
    for (const uint32_t stack : ending->second) {
      if (location(stack).column == source.column) alike.push_back(stack);
    }
    if (alike.empty()) alike = ending->second;
    return alike.size() == 1 ? alike[0] : common(alike);
  }

  // A stack of the frames that all of these have at the outer end, and at the inner one.
  uint32_t common(const std::vector<uint32_t>& alike) {
    const std::vector<uint32_t> first = chain(alike[0]);
    const bool too_many = alike.size() > kMostAlike;
    size_t outer = too_many ? 0 : first.size() - 1;
    size_t inner = too_many ? 1 : first.size();
    for (size_t i = 1; i < alike.size() && outer + inner > 1; ++i) {
      const std::vector<uint32_t> other = chain(alike[i]);
      size_t same = 0;
      while (same < outer && same + 1 < other.size() && first[same] == other[same]) ++same;
      outer = same;
      same = 1;
      while (same < inner && same < other.size() &&
             is_same(first[first.size() - 1 - same], other[other.size() - 1 - same]))
        ++same;
      inner = same;
    }
    uint32_t stack = outer == 0 ? 0 : first[outer - 1];
    for (size_t i = std::max(first.size() - inner, outer); i < first.size(); ++i)
      stack = add(module_.stacks_[first[i] - 1].location, stack);
    return stack;
  }

  // The numbers of a stack's frames, outermost first.
  std::vector<uint32_t> chain(uint32_t stack) const {
    std::vector<uint32_t> numbers;
    while (stack != 0 && stack <= module_.stacks_.size() && numbers.size() < kLongestStack) {
      numbers.push_back(stack);
      stack = module_.stacks_[stack - 1].parent;
    }
    std::reverse(numbers.begin(), numbers.end());
    return numbers;
  }

  Location location(uint32_t stack) const noexcept {
    const uint32_t at = module_.stacks_[stack - 1].location;
    return at == 0 || at > module_.locations_.size() ? Location() : module_.locations_[at - 1];
  }

  bool is_same(uint32_t one, uint32_t other) const noexcept {
    const Location a = location(one);
    const Location b = location(other);
    return a.file == b.file && a.function == b.function && a.line == b.line;
  }

  uint32_t line_alone(const Source& source) {
    const auto file = std::find(module_.files_.begin(), module_.files_.end(), source.file);
    const auto number = static_cast<uint32_t>(file - module_.files_.begin()) + 1;
    if (file == module_.files_.end()) module_.files_.push_back(source.file);
    module_.locations_.push_back({number, 0, source.line, source.column});
    return static_cast<uint32_t>(module_.locations_.size());
  }

  uint32_t add(uint32_t location, uint32_t parent) {
    module_.stacks_.push_back({location, parent});
    return static_cast<uint32_t>(module_.stacks_.size());
  }

  Module& module_;
  std::map<std::pair<std::string_view, int32_t>, std::vector<uint32_t>> ending_;  // stacks by their innermost line
  std::map<std::tuple<std::string_view, int32_t, int32_t>, uint32_t> found_;
};

// Where one number leads elsewhere than to the line of its instruction, all numbers are of another table.
void Module::settle_stacks() {
  const std::vector<Source> sources = std::exchange(sources_, {});
  bool of_another = false;
  for (size_t row = 0; row < sources.size() && !of_another; ++row) {
    const uint32_t stack = instructions_[row].stack;
    of_another = stack != 0 && !stands_at(stack, sources[row]) && knows(sources[row]);
  }
  if (!of_another) return;
  StackFinder finder(this);
  for (size_t row = 0; row < sources.size(); ++row) {
    const Source& source = sources[row];
    instructions_[row].stack = source.file.empty() || source.line == 0 ? 0 : finder.find(source);
  }
}

}  // namespace leadline::xla
