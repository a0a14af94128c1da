// What is done at the begin and the end of a call of a declared function, and when work is told to have ended.
//
// Runs inside the program's calls and on the library's own threads: nothing here throws or waits. What a wrong
// description would have us read at a wrong address is read through the kernel, so it is a missing value and no crash.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <utility>

#include "gpu/api_calls.h"
#include "providers/accelerator/description.h"
#include "providers/accelerator/finished.h"
#include "providers/accelerator/frame.h"
#include "providers/accelerator/handles.h"
#include "providers/accelerator/in_flight.h"
#include "providers/accelerator/values.h"

namespace leadline::accelerator {

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the ring in it keeps to cache lines of its own
class Calls {
 public:
  explicit Calls(gpu::LaunchTables& tables) : tables_(tables), calls_(tables) {}

  void begin(const Function& function, Frame& frame) noexcept;
  void end(Frame& frame) noexcept;
  // A callback of the program was called: its work has ended.
  void called_back(const Request& request, std::uint32_t session) noexcept;

  gpu::ApiCalls& api() noexcept { return calls_; }
  FinishedRing& finished() noexcept { return finished_; }
  // Told when much work has ended.
  std::condition_variable& wake() noexcept { return wake_; }
  std::uint64_t unclaimed() noexcept { return in_flight_.unclaimed(); }
  std::uint64_t unreadable() const noexcept { return values_.unreadable(); }

 private:
  struct OpenCall;
  void complete(const Function& function, const Frame& frame) noexcept;
  void fill(const Function& function, const Frame& frame, Request* request) noexcept;
  void after_return(OpenCall& call, const Frame& frame) noexcept;
  void tell(const Request& request, const Ran& ran) noexcept;
  std::uint64_t stream_of(const Function& function, const Frame& frame) noexcept;
  void leave_behind() noexcept;
  std::uint32_t next_id() noexcept { return ids_.fetch_add(1, std::memory_order_relaxed) + 1; }

  gpu::LaunchTables& tables_;
  gpu::ApiCalls calls_;
  InFlight in_flight_;
  FinishedRing finished_;
  std::condition_variable wake_;
  Handles handles_;
  Values values_;
  // Streams that are addresses, by their first use.
  struct StreamNumbers {
    static constexpr std::size_t kSlots = 1u << 12;
    std::array<std::atomic<std::uint64_t>, kSlots> handle{};
    std::array<std::atomic<std::uint32_t>, kSlots> number{};
    std::atomic<std::uint32_t> next{1};
    std::uint32_t of(std::uint64_t value) noexcept;
  } streams_;
  const std::uint32_t session_ = next_session();
  std::atomic<std::uint32_t> ids_{0};

  static std::uint32_t next_session() noexcept;
};

}  // namespace leadline::accelerator
