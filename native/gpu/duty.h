// When a costly way of measuring may be on: an account that grows by the budget's share of the time that passes and
// pays what each window has cost.
//
// A window opens as soon as the account holds what one is expected to cost, so that the mean cost of a run stays at the
// budget however the program changes; a window that was dearer is paid back by a longer rest. What is saved is bounded:
// a program that stood still for an hour is not disturbed for a minute afterwards.
#pragma once

#include <cstdint>

namespace leadline::gpu {

class Duty {
 public:
  // `budget`: share of the time, 0 to 1. `first_cost_ns`: what a window is thought to cost before one was measured.
  Duty(double budget, std::int64_t first_cost_ns) noexcept
      : budget_(budget), costs_ns_(static_cast<double>(first_cost_ns)) {}

  void begin(std::int64_t now_ns) noexcept { since_ns_ = now_ns; }
  // How long from now until a window may open; 0: at once.
  std::int64_t rest_ns(std::int64_t now_ns) noexcept {
    grow(now_ns);
    const double missing = expected_ns() - credit_ns_;
    if (missing <= 0) return 0;
    if (budget_ <= 0) return kNever;
    const double rest = missing / budget_;
    return rest < static_cast<double>(kNever) ? static_cast<std::int64_t>(rest) + 1 : kNever;
  }
  // A window has ended, and what is known of its cost by now.
  void window(std::int64_t now_ns, std::int64_t cost_ns) noexcept {
    costs_ns_ *= kKept;
    windows_ = windows_ * kKept + 1;
    spend(now_ns, cost_ns);
  }
  // What becomes known later: work that took longer inside windows, once it is reported.
  void spend(std::int64_t now_ns, std::int64_t cost_ns) noexcept {
    grow(now_ns);
    costs_ns_ += static_cast<double>(cost_ns);
    credit_ns_ -= static_cast<double>(cost_ns);
    spent_ns_ += cost_ns;
  }
  std::int64_t spent_ns() const noexcept { return spent_ns_; }
  // Of one window, by the last ones.
  double expected_ns() const noexcept { return windows_ > 0 ? costs_ns_ / windows_ : costs_ns_; }

 private:
  static constexpr double kKept = 0.8;  // weight of the windows before
  static constexpr double kMostSavedNs = 200e6;
  static constexpr std::int64_t kNever = std::int64_t{1} << 62;

  void grow(std::int64_t now_ns) noexcept {
    if (now_ns <= since_ns_) return;
    credit_ns_ += budget_ * static_cast<double>(now_ns - since_ns_);
    since_ns_ = now_ns;
    const double most = expected_ns() > kMostSavedNs ? expected_ns() : kMostSavedNs;
    if (credit_ns_ > most) credit_ns_ = most;
  }

  double budget_;
  double costs_ns_;
  double windows_ = 0;
  double credit_ns_ = 0;
  std::int64_t since_ns_ = 0;
  std::int64_t spent_ns_ = 0;
};

}  // namespace leadline::gpu
