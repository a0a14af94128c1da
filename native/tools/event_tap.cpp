#include "tools/event_tap.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "base/schema_generated.h"

namespace leadline {
namespace {

constexpr int64_t kLookEvery_ns = 1'000'000;

}  // namespace

EventTap::EventTap(uint32_t domains, size_t rows_per_thread)
    : domains_(domains), size_(std::bit_ceil(std::max<size_t>(rows_per_thread, 2))) {}

bool EventTap::start() noexcept {
  return subscription_ != 0 || leadline_monitor_register(domains_, &on_event, this, &subscription_) == LEADLINE_OK;
}

void EventTap::stop() noexcept {
  if (subscription_ != 0) leadline_monitor_unregister(subscription_);
  subscription_ = 0;
}

void EventTap::on_event(const leadline_event* event, void* user) noexcept {
  static_cast<EventTap*>(user)->take(*event);
}

EventTap::Ring* EventTap::ring_of(uint64_t* thread_data) noexcept {
  if (thread_data == nullptr) return nullptr;
  if (*thread_data != 0) return reinterpret_cast<Ring*>(static_cast<uintptr_t>(*thread_data));
  try {
    auto ring = std::make_unique<Ring>(size_);
    ring->tid = static_cast<uint32_t>(syscall(SYS_gettid));
    const std::lock_guard lock(change_);
    rings_.push_back(std::move(ring));
    *thread_data = reinterpret_cast<uintptr_t>(rings_.back().get());
    return rings_.back().get();
  } catch (...) {
    return nullptr;
  }
}

void EventTap::take(const leadline_event& event) noexcept {
  const bool scoped = event.scope_data != nullptr && event.phase != LEADLINE_INSTANT;
  if (scoped && event.phase == LEADLINE_BEGIN) {
    *event.scope_data = static_cast<uint64_t>(event.time_ns);
    return;
  }
  if (event.domain == LEADLINE_DOMAIN_GPU_ACTIVITY && event.of.gpu_activity.duration_ns == LEADLINE_TOLD_BEFORE) {
    return;  // samples of a piece of work that has its row
  }
  Ring* ring = ring_of(event.thread_data);
  if (ring == nullptr) {
    lost_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const uint64_t head = ring->head.load(std::memory_order_relaxed);
  if (head - ring->tail.load(std::memory_order_acquire) >= size_) {
    ring->lost.store(ring->lost.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return;
  }
  EventRow& row = ring->rows[head & (size_ - 1)];
  row = EventRow{};
  row.time_ns = event.time_ns;
  row.place = leadline_monitor_published();
  row.thread = ring->tid;
  row.domain = static_cast<uint8_t>(std::countr_zero(static_cast<uint32_t>(event.domain)));
  row.phase = static_cast<uint8_t>(event.phase);
  row.device = -1;
  if (scoped && *event.scope_data != 0) {
    row.time_ns = static_cast<int64_t>(*event.scope_data);
    row.duration_ns = event.time_ns - row.time_ns;
  }
  switch (event.domain) {
    case LEADLINE_DOMAIN_MEMORY:
      row.a = static_cast<int64_t>(event.of.memory.address);
      row.b = event.of.memory.bytes;
      row.c = event.of.memory.allocated_total;
      row.device = event.of.memory.device;
      row.device_type = static_cast<uint8_t>(event.of.memory.device_type);
      break;
    case LEADLINE_DOMAIN_REGION:
      row.kind = static_cast<uint8_t>(event.of.region.kind);
      row.a = event.of.region.step;
      break;
    case LEADLINE_DOMAIN_GPU_API:
    case LEADLINE_DOMAIN_GPU_ACTIVITY:
      fill_gpu(event, &row);
      break;
    default:
      break;
  }
  ring->head.store(head + 1, std::memory_order_release);
}

// a: correlation, b: bytes, c: stream. Of kernels a: blocks of the grid, b: threads of a block, 0 where nobody tells.
void EventTap::fill_gpu(const leadline_event& event, EventRow* row) noexcept {
  if (event.domain == LEADLINE_DOMAIN_GPU_API) {
    const leadline_gpu_api_event& api = event.of.gpu_api;
    row->kind = static_cast<uint8_t>(api.kind);
    row->a = static_cast<int64_t>(api.correlation);
    row->b = api.bytes;
    row->c = api.stream;
    row->device = api.device;
    row->device_type = static_cast<uint8_t>(api.device_type);
    return;
  }
  const leadline_gpu_activity_event& work = event.of.gpu_activity;
  row->kind = work.event_kind;
  row->place = work.context;
  row->time_ns = work.start_ns;
  row->duration_ns = work.duration_ns;
  row->a = static_cast<int64_t>(work.correlation);
  row->b = work.bytes;
  row->c = work.stream;
  row->device = work.device;
  row->device_type = static_cast<uint8_t>(work.device_type);
  row->name = work.name == nullptr ? 0 : number_of(work.name);
  const auto kind = static_cast<EventKind>(work.event_kind);
  if (kind != EventKind::kKernel && kind != EventKind::kCollective) return;
  row->a = row->b = 0;
  for (uint32_t i = 0; i < work.measure_count; ++i) {
    const auto metric = static_cast<MetricKind>(work.measures[i].metric);
    if (metric == MetricKind::kGridBlocks) row->a = work.measures[i].value;
    if (metric == MetricKind::kBlockThreads) row->b = work.measures[i].value;
  }
}

uint32_t EventTap::number_of(const char* name) noexcept {
  try {
    const std::lock_guard lock(change_);
    const auto [known, added] = numbers_.try_emplace(name, static_cast<uint32_t>(names_.size()));
    if (added) names_.emplace_back(name);
    return known->second;
  } catch (...) {
    return 0;
  }
}

void EventTap::wait(int64_t timeout_ns) const noexcept {
  for (int64_t waited_ns = 0; waited_ns < timeout_ns; waited_ns += kLookEvery_ns) {
    {
      const std::lock_guard lock(change_);
      for (const auto& ring : rings_) {
        const uint64_t tail = ring->tail.load(std::memory_order_relaxed);
        if (ring->head.load(std::memory_order_acquire) - tail >= size_ / 2) return;
      }
    }
    const timespec pause{0, static_cast<long>(kLookEvery_ns)};
    nanosleep(&pause, nullptr);
  }
}

size_t EventTap::drain(EventRow* rows, size_t room) noexcept {
  const std::lock_guard lock(change_);
  size_t taken = 0;
  for (const auto& ring : rings_) {
    const uint64_t head = ring->head.load(std::memory_order_acquire);
    uint64_t tail = ring->tail.load(std::memory_order_relaxed);
    for (; tail != head && taken < room; ++tail) rows[taken++] = ring->rows[tail & (size_ - 1)];
    ring->tail.store(tail, std::memory_order_release);
  }
  return taken;
}

size_t EventTap::waiting() const noexcept {
  const std::lock_guard lock(change_);
  uint64_t count = 0;
  for (const auto& ring : rings_)
    count += ring->head.load(std::memory_order_acquire) - ring->tail.load(std::memory_order_relaxed);
  return static_cast<size_t>(count);
}

uint64_t EventTap::lost() const noexcept {
  const std::lock_guard lock(change_);
  uint64_t count = lost_.load(std::memory_order_relaxed);
  for (const auto& ring : rings_) count += ring->lost.load(std::memory_order_relaxed);
  return count;
}

std::string EventTap::name(uint32_t number) const {
  const std::lock_guard lock(change_);
  return number < names_.size() ? names_[number] : std::string();
}

}  // namespace leadline
