#include "providers/torch/value_list.h"

#include <atomic>

#include "base/safe_pages.h"
#include "providers/torch/tensor_layout.h"

namespace leadline::torch {
namespace {

std::atomic<uint32_t> g_vector{0};  // bytes from the beginning of a list; 0: not known

struct Vector {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t room = 0;
};

}  // namespace

bool ValueList::learn(uint64_t list, uint64_t element) noexcept {
  for (uint32_t offset = 8; offset <= 40; offset += 8) {
    Vector found;
    Value first{};
    if (!read_safely(list + offset, &found, sizeof found) || found.end != found.begin + sizeof(Value) ||
        found.room < found.end || !read_safely(found.begin, &first, sizeof first))
      continue;
    if (first.tag != kInteger || first.payload != element) continue;
    g_vector.store(offset, std::memory_order_relaxed);
    return true;
  }
  return false;
}

bool ValueList::known() noexcept { return g_vector.load(std::memory_order_relaxed) != 0; }

Values ValueList::of(uint64_t list) noexcept {
  const auto vector = at<Vector>(list, g_vector.load(std::memory_order_relaxed));
  return {reinterpret_cast<const Value*>(vector.begin), (vector.end - vector.begin) / sizeof(Value)};
}

}  // namespace leadline::torch
