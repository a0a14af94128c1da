// Events of the monitor as rows of fixed size, one ring per thread, for tools that look at them on a thread of their
// own.
//
// Promises of the event path: no lock, no string, and memory only when a thread is new (device work, which comes on
// threads of the vendor's library, takes a lock for the kernel's name). A full ring counts what it could not take.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "leadline/monitor.h"

namespace leadline {

// What a, b, c and d mean is told by the domain: see row_of() in event_tap.cpp and docs/tool-events.md.
struct EventRow {
  int64_t time_ns;
  uint64_t place;
  int64_t duration_ns;
  int64_t a;
  int64_t b;
  int64_t c;
  int32_t device;
  uint32_t thread;
  uint8_t domain;  // number of the bit of leadline_domain
  uint8_t kind;
  uint8_t device_type;
  uint8_t phase;
  uint32_t name;  // device work: its number in names(); 0 elsewhere
};
static_assert(sizeof(EventRow) == 64);

class EventTap {
 public:
  explicit EventTap(uint32_t domains, size_t rows_per_thread = size_t{1} << 16);
  ~EventTap() { stop(); }
  EventTap(const EventTap&) = delete;
  EventTap& operator=(const EventTap&) = delete;

  bool start() noexcept;
  // When it returns no event is being written. Rows stay to be drained.
  void stop() noexcept;

  // Waits until a ring is half full or the time is over. Not with the GIL.
  void wait(int64_t timeout_ns) const noexcept;
  // Rows of every thread, oldest first in each; at most `room`. One caller at a time.
  size_t drain(EventRow* rows, size_t room) noexcept;
  size_t waiting() const noexcept;
  // Rows that found their ring full, or no memory.
  uint64_t lost() const noexcept;
  std::string name(uint32_t number) const;

 private:
  struct Ring {
    explicit Ring(size_t rows) : rows(std::make_unique_for_overwrite<EventRow[]>(rows)) {}
    std::unique_ptr<EventRow[]> rows;
    alignas(64) std::atomic<uint64_t> head{0};  // written by the thread of the events
    std::atomic<uint64_t> lost{0};
    uint32_t tid = 0;
    alignas(64) std::atomic<uint64_t> tail{0};  // written by drain()
  };
  static void on_event(const leadline_event* event, void* user) noexcept;
  void take(const leadline_event& event) noexcept;
  Ring* ring_of(uint64_t* thread_data) noexcept;
  void fill_gpu(const leadline_event& event, EventRow* row) noexcept;
  uint32_t number_of(const char* name) noexcept;

  const uint32_t domains_;
  const size_t size_;  // a power of two
  leadline_subscription subscription_ = 0;
  std::atomic<uint64_t> lost_{0};
  mutable std::mutex change_;  // rings_, names_
  std::vector<std::unique_ptr<Ring>> rings_;
  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<std::string> names_{""};
};

}  // namespace leadline
