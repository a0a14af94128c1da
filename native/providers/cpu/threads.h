// The threads of the process and what interrupts them: a helper thread finds new ones, lets go of ended ones, and has
// samples booked.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "providers/cpu/booker.h"
#include "providers/cpu/sampled_thread.h"
#include "providers/cpu/signal_stacks.h"
#include "providers/cpu/waits.h"

namespace leadline::cpu {

// Whether a thread is called as ours are.
bool is_our_name(pid_t tid);

class Threads {
 public:
  static constexpr size_t kMost = 1024;  // threads sampled at a time

  explicit Threads(Booker& booker) : booker_(booker), waits_(booker) {}

  // Arms every thread. False with a sentence when the system refuses. `wait_hz`: how often waiting threads are looked
  // at; 0: never.
  bool start(double hz, double wait_hz, std::string* why);
  // Disarms them and books what is left.
  void stop() noexcept;
  // What was sampled so far is booked; until resume() time passes unsampled.
  void pause() noexcept;
  void resume() noexcept;
  // Around a fork: no thread of ours is there while it happens.
  void rest() noexcept;
  void wake();
  // In the child: nothing of the parent's is looked at again.
  void forget() noexcept;
  // On a thread that has just begun: sampled from now on, also where it ends before the next listing.
  void meet_own();
  // All samples that wait, booked; from the thread on which a code object dies.
  void book_waiting() noexcept;

  struct Count {
    uint64_t samples = 0;
    int64_t handlers_ns = 0;  // CPU time that taking samples took
    int64_t helper_ns = 0;    // CPU time of the helper thread
    uint32_t threads = 0;
    bool scaled = false;  // counters took turns
  };
  Count count() const noexcept;

 private:
  void begin_helper();
  void end_helper() noexcept;
  void run();
  void list();
  bool looks_closely() const noexcept;
  SampledThread* known(pid_t tid) noexcept;
  SampledThread* fresh();
  void meet(pid_t tid, bool new_born);
  bool is_own(pid_t tid) const noexcept;
  void look_at_own() noexcept;
  void count_unseen(int64_t process_ns) noexcept;
  void look_at(SampledThread& thread);
  void part(SampledThread& thread) noexcept;
  bool arm(SampledThread& thread) noexcept;
  void disarm(SampledThread& thread) noexcept;
  void account(SampledThread& thread, int64_t ran_ns) noexcept;
  static CounterWords counted(const SampledThread& thread) noexcept;
  void arm_anew() noexcept;

  Booker& booker_;
  Waits waits_;
  SignalStacks stacks_;
  bool with_waits_ = false;
  int64_t wait_interval_ns_ = 0;
  int64_t look_at_ns_ = 0;                // when waiting threads are looked at next
  uint64_t first_step_ = 0;               // steps that had ended when sampling began
  uint32_t close_looks_ = 0;              // of the first second of steps
  std::chrono::microseconds interval_{};  // from listing to listing
  double hz_ = 0;
  int signal_ = 0;
  bool with_task_clocks_ = false;
  bool first_listing_ = true;
  uint32_t listings_ = 0;
  bool paused_ = false;
  bool running_ = false;
  std::vector<SampledThread*> all_;  // under the booker's lock
  struct Own {
    pid_t tid;
    int64_t ran_ns;  // when last looked at
  };
  std::vector<Own> own_;  // threads of ours, which are not sampled
  std::thread helper_;
  std::mutex waking_;
  std::condition_variable wake_;
  bool ending_ = false;
  std::atomic<pid_t> helper_tid_{0};
  std::atomic<int64_t> helper_ns_{0};
  uint64_t samples_ = 0;     // of threads that are over; under the booker's lock, as all below
  int64_t handlers_ns_ = 0;  // the same
  uint32_t parted_ = 0;
  bool scaled_ = false;
  bool refused_ = false;
  // To find what no listing saw: CPU time of the process when sampling began, later by what it ran in pauses; when the
  // pause began that lasts; of threads of ours.
  int64_t process_begin_ns_ = 0;
  int64_t process_paused_ns_ = 0;
  int64_t own_ns_ = 0;
};

}  // namespace leadline::cpu
