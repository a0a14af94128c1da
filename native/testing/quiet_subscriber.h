// In the place of the collector: hears everything and keeps nothing. Tests override what they look at.
#pragma once

#include <string_view>

#include "monitor/monitor.h"

namespace leadline::testing {

class QuietSubscriber : public Subscriber {
 public:
  bool begin_operator(const leadline_operator_event&, const void*, ThreadState&) override { return false; }
  bool end_operator(const void*, int64_t, ThreadState&) override { return false; }
  void on_operator_begin(const leadline_operator_event&, ThreadState&) noexcept override {}
  void on_operator_end(int64_t, ThreadState&) noexcept override {}
  void on_event(const leadline_event&, ThreadState&) noexcept override {}
  void on_memory(const leadline_memory_event&, ThreadState&) noexcept override {}
  void on_scopes_moved(ThreadState&) noexcept override {}
  leadline_context context(ThreadState&, bool) noexcept override { return 0; }
  bool context_in_file(leadline_context, std::string_view) const noexcept override { return false; }
  void on_thread_exit(ThreadState&) noexcept override {}
};

}  // namespace leadline::testing
