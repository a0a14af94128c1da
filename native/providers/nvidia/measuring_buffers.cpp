// The buffers that CUPTI asks for and hands over, and when it is let to rest.
#include <array>

#include "base/ids.h"

#include "gpu/measure.h"
#include "providers/nvidia/in_callback.h"
#include "providers/nvidia/measuring.h"

namespace leadline::nvidia {
namespace {

constexpr std::int64_t kRestAfterNs = 100'000'000;          // of a pause
constexpr std::uint64_t kMissedLaunches = 64;               // kernels with a record and no call
constexpr std::int64_t kAwaitBeforeRestNs = 2'000'000'000;  // of a pause, for work from before

// Of CUPTI before 12.9, which ends the program where it is answered with no buffer.
std::atomic<bool> must_answer{false};
// Given where there is no other. Several threads may be given it at once, so nothing in it is read.
alignas(64) std::array<std::uint8_t, gpu::BufferPool::kSmallBytes> last_resort{};

}  // namespace

void Measuring::offer_buffers() {
  must_answer.store(version_ < cupti::kVersion12_9, std::memory_order_relaxed);
  buffers_->prepare();
}

void Measuring::on_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *most = 0;
  *size = 0;
  *buffer = nullptr;
  gpu::BufferPool::Buffer taken;
  if (const InCallback self; self) {
    taken = self->buffers_->take();
    if (taken.data == nullptr)
      gpu::count_loss(LossKind::kGpuBufferExhausted, 1,
                      "All activity buffers were in use, so CUPTI dropped records: more threads launch than have "
                      "buffers (2,048), or the machine has too few free cores.");
  }
  if (taken.data == nullptr && must_answer.load(std::memory_order_relaxed))
    taken = {last_resort.data(), last_resort.size()};
  *buffer = taken.data;
  *size = taken.bytes;
}

void Measuring::on_completed(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                             std::size_t valid) {
  const InCallback self;
  if (!self) return;
  if (buffer == last_resort.data()) {
    gpu::count_loss(LossKind::kGpuRecordsDropped, 1, "There was no activity buffer for records of CUPTI.");
    return;
  }
  if (!self->buffers_->submit({buffer, valid, context, stream})) return;
  self->ready_.store(true, std::memory_order_release);  // the folding thread looks now and then
}

// A CUPTI that was not finalised may write to a buffer that it has not handed over, at any time.
void Measuring::keep_what_cupti_holds() {
  if (!left_alone_) return;  // then all of this is kept
  if (buffers_->out() == 0 || finalized_.load()) return;
  static auto& kept = *new std::vector<std::unique_ptr<gpu::BufferPool>>;  // never destroyed
  kept.push_back(std::move(buffers_));
}

// CUPTI costs as much as ever while it records and calls back, whatever becomes of it. What a pause began with has to
// have ended: records, and calls that were told to begin.
void Measuring::rest_if_paused_long() noexcept {
  const std::unique_lock rest(rest_mutex_, std::try_to_lock);
  if (!rest || paused_since_ns_ == 0 || rests_ || sampling_ || fatal_.load(std::memory_order_relaxed)) return;
  const std::int64_t paused_ns = waiting_clock() - paused_since_ns_;
  if (paused_ns < kRestAfterNs || tables_.launches.log()->any_inside()) return;
  if (tables_.launches.outstanding() > 0 && paused_ns < kAwaitBeforeRestNs) return;
  flushing_since_ns_.store(waiting_clock(), std::memory_order_relaxed);
  subscription_.rest(true);
  flushing_since_ns_.store(0, std::memory_order_relaxed);
  rests_ = true;
}

// The driver's callbacks have seen all launches wherever that was tried. Where they do not, no launch goes on missing.
void Measuring::follow_launches_that_are_missed() noexcept {
  if (subscription_.follows_runtime_launches() || rests_.load(std::memory_order_relaxed)) return;
  {
    const std::lock_guard lock(fold_mutex_);
    const gpu::FoldCounters& counters = fold_.counters();
    const bool misses =
        counters.kernels_unattributed >= kMissedLaunches && 2 * counters.kernels_unattributed >= counters.kernels;
    if (!misses || fatal_.load(std::memory_order_relaxed)) return;
  }
  subscription_.follow_runtime_launches();
  gpu::count_loss(LossKind::kProviderUnavailable, 1,
                  "This CUPTI does not report launches by the driver's callbacks, so the first kernels are on no call "
                  "path; launches are followed by the runtime's callbacks since.");
}

}  // namespace leadline::nvidia
