// One context whose instructions are sampled: room for CUPTI's records, its reasons by name, its last windows.
#pragma once

#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "providers/nvidia/pc_sampling.h"

namespace leadline::nvidia {

inline constexpr std::size_t kPcRecords = 4096;  // of instructions, taken in one call
inline constexpr std::size_t kWindowsKept = 8;   // late data is known by

inline cupti::SamplingOfContext of_context(void* context) {
  return {sizeof(cupti::SamplingOfContext), nullptr, context};
}
// Names live as long as the process: frames of instructions and samples on their way point to them.
const char* kept_name(std::string&& name);
const char* mode_name(cupti::SamplingMode mode);

// Room for records as CUPTI fills them.
struct PcSampler::Records {
  Records(std::size_t stride, std::size_t reasons) : stride_(stride), reasons_(reasons) {
    pcs_.resize(kPcRecords * stride);
    stalls_.resize(kPcRecords * reasons);
  }
  cupti::SamplingData* empty() {
    data_ = {};
    data_.size = sizeof data_;
    data_.room = kPcRecords;
    data_.pcs = pcs_.data();
    for (std::size_t i = 0; i < kPcRecords; ++i) {
      cupti::PcRecord record{};
      record.size = stride_;
      record.stalls = &stalls_[i * reasons_];
      std::memcpy(&pcs_[i * stride_], &record, stride_);
    }
    return &data_;
  }
  cupti::PcRecord at(std::size_t i) const {
    cupti::PcRecord record{};
    std::memcpy(&record, &pcs_[i * stride_], stride_);
    return record;
  }
  const cupti::SamplingData& data() const { return data_; }
  std::size_t reasons() const { return reasons_; }

 private:
  std::size_t stride_;
  std::size_t reasons_;
  std::vector<unsigned char> pcs_;
  std::vector<cupti::StallCount> stalls_;
  cupti::SamplingData data_{};
};

struct PcSampler::Context {
  Context(void* handle_, std::int32_t device_) : handle(handle_), device(device_) {}
  struct Reason {
    const char* name = nullptr;  // null: it was issued
    bool not_issued = false;
  };
  struct Window {
    std::uint64_t number = 0;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
  };

  void* const handle;
  const std::int32_t device;
  std::mutex mutex;  // of everything below, and of CUPTI's calls for this context
  bool on = false;
  bool open = false;
  std::atomic<std::uint64_t> asked{0};  // the last window that it had its samples of
  std::uint32_t launches = 0;           // since it is open
  std::thread::id opened_by;
  std::unordered_map<std::uint32_t, Reason> reasons;
  std::unique_ptr<Records> records;
  std::unique_ptr<Records> leftover;  // room for what CUPTI has when it is switched off
  std::deque<Window> windows;         // the last ones: data may come after the next one has begun
  // CUPTI's number of a stretch less ours; its numbers follow each other, wherever they begin.
  std::optional<std::uint64_t> shift;

  void opens(std::int64_t now_ns) {
    windows.push_back({windows.empty() ? 0 : windows.back().number + 1, now_ns, now_ns});
    if (windows.size() > kWindowsKept) windows.pop_front();
    open = true;
    launches = 0;
    opened_by = std::this_thread::get_id();
  }
  void closes(std::int64_t now_ns) {
    windows.back().end_ns = now_ns;
    open = false;
  }
  // That data with this number was taken in; the last one where nothing else is known.
  const Window& window(std::uint64_t range) {
    if (open) windows.back().end_ns = leadline_monitor_now();
    if (shift) {
      for (const Window& one : windows) {
        if (one.number + *shift == range) return one;
      }
    }
    shift = range - windows.back().number;
    return windows.back();
  }
};

}  // namespace leadline::nvidia
