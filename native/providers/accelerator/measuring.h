// Everything that lives while measuring: tables, the fold, the thread that folds ended work and looks for new
// libraries. Made by start, kept until no call can be inside it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/device_table.h"
#include "gpu/activity_fold.h"
#include "providers/accelerator/calls.h"
#include "providers/accelerator/places.h"

namespace leadline::accelerator {

struct Details {
  std::uint64_t calls = 0;
  std::uint64_t records = 0;
  std::uint64_t unattributed = 0;
  std::uint64_t unclaimed = 0;  // ends of work whose launch was not seen
  std::uint64_t outstanding = 0;
  std::uint64_t unreadable = 0;  // pointers that led nowhere
  std::uint64_t functions_bound = 0;
  std::int64_t fold_ns = 0;
  bool audited = false;
  std::vector<std::string> libraries;
  std::vector<std::string> missing;  // "library\tfunction"
};

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the ring in it keeps to cache lines of its own
class Measuring {
 public:
  Measuring(const Description& description, std::function<void(DeviceDescription)> describe_device);
  ~Measuring();
  Measuring(const Measuring&) = delete;
  Measuring& operator=(const Measuring&) = delete;

  void start(bool paused);
  void pause();
  void resume();
  // Waits a moment for work that is on its way, and counts what was.
  void stop();
  // Around a fork: the thread is outside of the loader.
  void before_fork() { fold_mutex_.lock(); }
  void after_fork() { fold_mutex_.unlock(); }
  // The child of a fork: the thread, and whoever held a lock, are not here.
  void abandon(leadline_subscription* places) noexcept;
  Details details();
  // After stop(): no call is inside, so it may be destroyed.
  bool left_alone() const noexcept { return left_alone_; }
  Calls& calls() noexcept { return calls_; }

 private:
  static void on_place_changed(const leadline_event* event, void* user);
  void run();
  void fold();
  void fold_one(const Finished& finished);
  void describe_devices();

  const Description& description_;
  std::function<void(DeviceDescription)> describe_device_;
  gpu::LaunchTables tables_;
  Calls calls_;
  gpu::ActivityFold fold_;
  leadline_subscription places_changed_ = 0;

  std::mutex fold_mutex_;  // all below; calls of the program never take it
  Places places_;
  std::map<std::pair<std::int32_t, std::int64_t>, std::int64_t> last_end_ns_;  // by device and stream
  std::set<std::int32_t> devices_;
  std::int64_t fold_ns_ = 0;

  std::mutex wake_mutex_;
  bool ending_ = false;
  bool left_alone_ = false;
  std::thread thread_;
};

}  // namespace leadline::accelerator
