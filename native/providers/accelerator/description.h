// What a file says of accelerators, as capture/accelerator.py has checked and written it: lines of words between tabs.
//
//   accelerator NAME CLOCK TICK_NS
//   library PATTERN
//   function NAME KIND BLOCKING SUCCESS DIRECTION BYTES_EACH    (DIRECTION: one, or by an argument: 1:HtoD,2:DtoH)
//   argument TYPE ROLE          (ROLE `-` for none; TYPE with `*` behind it: a pointer to one; TYPE `...`: any more)
//   returns TYPE ROLE
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/work.h"

namespace leadline::accelerator {

enum class Kind : std::uint8_t { kLaunch, kCopy, kSet, kSynchronize, kAllocate, kFree, kComplete, kOther };
enum class Type : std::uint8_t { kVoid, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kF32, kF64, kPointer, kText };
enum class Role : std::uint8_t {
  kNone,
  kName,    // text: what runs
  kKernel,  // a handle: stands for the name that the call which made it was given
  kBytes,   // several are multiplied
  kStream,
  kDevice,
  kId,          // of the work, in the call that launches it and in the one that tells its end
  kCompletion,  // a function of the program's that is called once when the work has ended
  kAddress,     // of device memory
  kBegin,       // of the work, as the device's clock has it
  kEnd,
  kDuration,
  kDirection,  // of a copy, as a number
};
enum class Success : std::uint8_t { kAlways, kZero, kNonzero };
// Of begin and end.
enum class Clock : std::uint8_t { kOwn, kMonotonic, kRealtime };

struct Argument {
  static constexpr std::uint8_t kVectors = 6;  // `where`: 6 general registers, then 8 vector registers, then the stack
  static constexpr std::uint8_t kStack = 14;
  Type type = Type::kVoid;
  bool points = false;  // to one of this type
  Role role = Role::kNone;
  std::uint8_t where = 0;
};

struct Accelerator;

struct Function {
  std::string name;
  Kind kind = Kind::kOther;
  bool blocking = false;  // the device has finished when the function returns
  Success success = Success::kAlways;
  gpu::Direction direction = gpu::Direction::kUnknown;
  std::vector<std::pair<std::int64_t, gpu::Direction>> directions;  // by the value of the argument
  std::int64_t bytes_each = 1;
  std::vector<Argument> arguments;
  Argument returned;
  std::uint32_t stack_words = 0;  // to be passed on
  bool more = false;              // `...`
  const Accelerator* of = nullptr;

  const Argument* with(Role role) const noexcept;
  // Its work, if it makes any, will be told.
  bool makes_work() const noexcept;
  // Its id is known only when it has returned.
  bool late_id() const noexcept;
};

struct Accelerator {
  std::string name;
  std::vector<std::string> libraries;  // patterns
  Clock clock = Clock::kOwn;
  double tick_ns = 1;
  std::int32_t first_device = 0;  // number of its device 0 in this process
};

// Of any number of accelerators; functions are numbered as they come.
struct Description {
  std::string text;
  std::vector<std::unique_ptr<Accelerator>> accelerators;
  std::vector<std::unique_ptr<Function>> functions;
};

inline constexpr std::int32_t kDevicesOfOne = 256;

// False with one sentence in *error.
bool parse(const std::string& text, Description* out, std::string* error);
// As the audit library does it.
bool matches(const std::string& pattern, const std::string& path);

}  // namespace leadline::accelerator
