// The host half: subscribes to the Compute Sanitizer, gives chosen launches a tracker and tells what they did.
//
// Promises inside the vendor's callbacks: nothing waits, nothing throws, no lock is held while the vendor's library is
// called; memory is taken for new functions, contexts and places only. One at a time in a process, since the library
// has one subscriber.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/sanitizer/known_code.h"
#include "backends/sanitizer/library.h"
#include "backends/sanitizer/losses.h"
#include "backends/sanitizer/object_table.h"
#include "backends/sanitizer/rows.h"
#include "backends/sanitizer/selection.h"
#include "backends/sanitizer/trackers.h"
#include "leadline/monitor.h"

namespace leadline::sanitizer {

struct Options {
  std::vector<std::string> candidates;  // where the library may be
  std::string image;                    // the text, compiled
  Wanted wanted;
  Shape shape;
  std::vector<Patch> patches;
};

class Backend {
 public:
  explicit Backend(Options options);
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  // Empty, or one sentence why it does not work here.
  std::string start();
  // Launches that are under way have a second to end. What was told stays to be drained.
  void stop(std::chrono::milliseconds patience = std::chrono::seconds(1)) noexcept;

  // Until there is a lot to drain, or the time is over. Not with the GIL.
  void wait(std::int64_t timeout_ns) noexcept;
  RowQueue<LaunchRow>& launches() noexcept { return launches_; }
  Outlets& results() noexcept { return out_; }
  ObjectTable& objects() noexcept { return objects_; }
  LostCounts& lost() noexcept { return lost_; }
  KnownCode* code() noexcept { return code_.get(); }
  std::uint64_t skipped() const noexcept { return skipped_.load(std::memory_order_relaxed); }
  // Launches under way.
  std::size_t under_way() noexcept;

 private:
  static void on_callback(void* user, abi::Domain domain, std::uint32_t id, const void* data) noexcept;
  static void on_memory(const leadline_event* event, void* user) noexcept;
  void resource(abi::Resource id, const void* data) noexcept;
  void launch(const abi::LaunchData& data, abi::StreamHandle order, std::uint64_t group) noexcept;
  void measure(const abi::LaunchData& data, abi::StreamHandle order, const Flight& flight) noexcept;
  bool begin_late(Trackers& trackers, const abi::LaunchData& data, abi::StreamHandle order, const Flight& flight,
                  Lost* why) noexcept;
  Trackers* trackers_of(abi::Context context) noexcept;
  void harvest() noexcept;
  void work() noexcept;

  static constexpr std::size_t kContexts = 32;

  const Options options_;
  LostCounts lost_;
  std::atomic<bool> waiting_helps_{true};  // for a tracker: the last wait ended with one
  ObjectTable objects_;
  Outlets out_;
  RowQueue<LaunchRow> launches_;
  std::optional<SanitizerLibrary> library_;
  std::unique_ptr<Selection> selection_;
  std::unique_ptr<KnownCode> code_;
  abi::Subscriber subscriber_ = nullptr;
  leadline_subscription memory_ = 0;
  std::atomic<bool> measuring_{false};
  std::atomic<std::int64_t> launched_{0};
  std::atomic<std::uint64_t> skipped_{0};
  SpinLock contexts_lock_;  // adds one; never held while the vendor is called
  std::array<std::atomic<Trackers*>, kContexts> contexts_{};
  SpinLock harvest_lock_;
  std::thread worker_;
  std::atomic<bool> ends_{false};
  const int process_;
};

}  // namespace leadline::sanitizer
