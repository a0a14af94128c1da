// Whether the address of an operator's name still means the operator that it meant.
//
// The name lies in the operator's schema. Where an operator is taken away (torch.library, extensions that are loaded
// again) torch frees it, and the next operator's may get the address. torch tells who asks of both.
#pragma once

#include <atomic>
#include <cstdint>

namespace leadline::torch {

class OperatorNames {
 public:
  // From now on, for the life of the process. False where this torch does not tell: then no address means a name.
  static bool follow() noexcept;
  // As in leadline_operator_event: what has the same address and the same number has the same name.
  static uint16_t generation() noexcept { return generation_.load(std::memory_order_relaxed); }
  // An address may mean another name from here on.
  static void begin_generation() noexcept { generation_.fetch_add(1, std::memory_order_relaxed); }

 private:
  static inline std::atomic<uint16_t> generation_{0};
};

}  // namespace leadline::torch
