#include "providers/accelerator/values.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/safe_pages.h"

namespace leadline::accelerator {
namespace {

std::size_t size_of(Type type) noexcept {
  switch (type) {
    case Type::kI8:
    case Type::kU8:
      return 1;
    case Type::kI16:
    case Type::kU16:
      return 2;
    case Type::kI32:
    case Type::kU32:
    case Type::kF32:
      return 4;
    default:
      return 8;
  }
}

template <class T>
T low(std::uint64_t word) noexcept {
  T value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

std::int64_t whole(double value) noexcept {
  return std::isfinite(value) && std::fabs(value) < 9e18 ? static_cast<std::int64_t>(value) : 0;
}

double real_value(Type type, std::uint64_t word) noexcept {
  if (type == Type::kF32) return low<float>(word);
  if (type == Type::kF64) return low<double>(word);
  if (type == Type::kU64) return static_cast<double>(word);
  return static_cast<double>(signed_value(type, word));
}

// Printable, whatever the program passed.
void make_text(Values::Text& name) noexcept {
  for (char& c : name) {
    if (c == 0) return;
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) c = byte < 0x80 ? ' ' : '?';
  }
}

}  // namespace

std::uint64_t word(const Frame& frame, const Argument& argument) noexcept {
  if (argument.where < Argument::kVectors) return frame.general[argument.where];
  if (argument.where < Argument::kStack) return frame.vector[argument.where - Argument::kVectors].low;
  return frame.stack[argument.where - Argument::kStack];
}

void replace(Frame& frame, const Argument& argument, const void* by) noexcept {
  const auto value = reinterpret_cast<std::uint64_t>(by);
  if (argument.where < Argument::kVectors) {
    frame.general[argument.where] = value;
  } else if (argument.where >= Argument::kStack) {
    frame.stack[argument.where - Argument::kStack] = value;  // the callee's own, by the convention
  }
}

std::int64_t signed_value(Type type, std::uint64_t word) noexcept {
  switch (type) {
    case Type::kI8:
      return low<std::int8_t>(word);
    case Type::kU8:
      return low<std::uint8_t>(word);
    case Type::kI16:
      return low<std::int16_t>(word);
    case Type::kU16:
      return low<std::uint16_t>(word);
    case Type::kI32:
      return low<std::int32_t>(word);
    case Type::kU32:
      return low<std::uint32_t>(word);
    case Type::kF32:
      return whole(low<float>(word));
    case Type::kF64:
      return whole(low<double>(word));
    default:
      return static_cast<std::int64_t>(word);
  }
}

bool Values::value(const Frame& frame, const Argument& argument, std::uint64_t* out) noexcept {
  *out = word(frame, argument);
  if (!argument.points) return true;
  const std::uint64_t address = *out;
  *out = 0;
  if (read_safely(address, out, size_of(argument.type))) return true;
  unreadable_.fetch_add(address != 0 ? 1 : 0, std::memory_order_relaxed);
  return false;
}

bool Values::integer(const Frame& frame, const Argument& argument, std::int64_t* out) noexcept {
  std::uint64_t found = 0;
  if (!value(frame, argument, &found)) return false;
  *out = signed_value(argument.type, found);
  return true;
}

bool Values::real(const Frame& frame, const Argument& argument, double* out) noexcept {
  std::uint64_t found = 0;
  if (!value(frame, argument, &found)) return false;
  *out = real_value(argument.type, found);
  return std::isfinite(*out);
}

bool Values::text(const Frame& frame, const Argument& argument, Text* out) noexcept {
  const std::uint64_t address = word(frame, argument);
  out->fill(0);
  if (address == 0) return false;
  static const auto kPage = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::size_t most = out->size() - 1;
  const std::size_t first = std::min<std::size_t>(most, kPage - address % kPage);  // what follows may not be there
  if (!read_safely(address, out->data(), first)) {
    unreadable_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  if (first < most && std::memchr(out->data(), 0, first) == nullptr) {
    read_safely(address + first, out->data() + first, most - first);
  }
  make_text(*out);
  return (*out)[0] != 0;
}

}  // namespace leadline::accelerator
