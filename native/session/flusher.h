// Writes a session's segments now and then on a thread of its own, and the last one when a signal ends the process.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/losses.h"
#include "base/own_thread.h"
#include "base/wake.h"
#include "session/session.h"
#include "session/termination.h"

namespace leadline {

class Session::Flusher {
 public:
  Flusher(Session& session, double interval_s) : session_(session), interval_(interval_s) { begin(); }
  ~Flusher() { close(); }
  // For good; a signal that comes now is for the program.
  void close() {
    const std::lock_guard lock(changing_);
    closed_ = true;
    due_ns_.store(kNever);  // whoever closes writes the last one
    end();
    if (!std::exchange(forgotten_, true)) termination::forget();
  }
  // Ends the thread. A signal that comes now stays pending, for whoever writes the last segment.
  void halt() {
    const std::lock_guard lock(changing_);
    end();
  }
  // As halt(), and until wake() a signal ends the process at once. Threads that fork at a time rest together.
  void rest() {
    const std::lock_guard lock(changing_);
    ++resting_;
    if (closed_) return;
    end();
    termination::forget();
    if (const int signal = termination::pending(); signal != 0) {
      session_.write(true);
      termination::die(signal);
    }
  }
  void wake() {
    const std::lock_guard lock(changing_);
    if (resting_ > 0) --resting_;
    if (resting_ == 0 && !closed_) begin();
  }
  Flusher(const Flusher&) = delete;
  Flusher& operator=(const Flusher&) = delete;

 private:
  void begin() {
    if (thread_.joinable()) return;
    stop_.store(false);
    wake_ = termination::listen();
    try {
      thread_ = own_thread([this] { run(); });
      pthread_setname_np(thread_.native_handle(), "leadline-flush");
    } catch (const std::exception&) {  // no thread, or no memory for one
      termination::forget();           // nobody would answer
      losses().count(LossKind::kInternalError, 1,
                     "No thread for writing segments could be started (see ulimit -u and memory); a killed process "
                     "leaves nothing.");
    }
  }
  void end() {
    if (!thread_.joinable()) return;
    stop_.store(true);
    wake_->post();
    thread_.join();
    wait_until_uncounted(tid_.load());
  }
  // A joined thread may still be listed for a moment. Python warns of a fork when it sees more than one thread.
  static void wait_until_uncounted(pid_t tid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d", tid);
    for (int tries = 0; tries < 1000 && access(path, F_OK) == 0; ++tries) sched_yield();
  }

  void run() {
    tid_.store(static_cast<pid_t>(syscall(SYS_gettid)));
    // The first segment comes early, so that a program that dies young leaves something. When the next one is due
    // outlives a rest: a program that forks all the time still writes each interval.
    if (due_ns_.load() == 0) due_in(interval_ < 1.0 ? interval_ : 1.0);
    for (;;) {
      wake_->wait(due_ns_.load() - now_ns());
      const bool due = now_ns() >= due_ns_.load();
      if (stop_.load() && !due) return;
      if (const int signal = termination::pending(); signal != 0) {
        session_.write(true);
        termination::die(signal);
        return;
      }
      if (!due) continue;
      const WriteResult result = session_.flush();
      // Without its folder the session is over, and nobody will read a segment of this process: only signals are
      // waited for from now on.
      const bool over = result.error == WriteError::kOpen && result.system_errno == ENOENT;
      due_in(over ? kForeverS : interval_);
      if (stop_.load()) return;
    }
  }
  void due_in(double seconds) noexcept { due_ns_.store(now_ns() + static_cast<int64_t>(seconds * 1e9)); }

  static constexpr double kForeverS = 1e9;  // thirty years
  static constexpr int64_t kNever = INT64_MAX;

  Session& session_;
  double interval_;
  Wake* wake_ = nullptr;
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> due_ns_{0};  // when the next segment is; 0: not known yet
  std::atomic<pid_t> tid_{0};
  std::mutex changing_;  // one thread at a time begins or ends the thread
  int resting_ = 0;      // rests without their wake()
  bool closed_ = false;
  bool forgotten_ = false;
  std::thread thread_;
};

}  // namespace leadline
