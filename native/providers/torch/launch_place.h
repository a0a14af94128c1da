// From which place the work of a helper thread was asked for.
//
// A process group hands its collectives to threads of its own, which have no Python. torch carries a thread's debug
// information over to them, as it does for everything that it hands to another thread; so the place of an operator that
// launches such work is put there while the operator runs, and taken away with it, as torch's own DebugInfoGuard does.
#pragma once

#include <cstdint>
#include <memory>

#include "leadline/monitor.h"
#include "providers/torch/record_function.h"

namespace leadline::torch {

// While it lives, threads that this one hands work to find the present place.
class LaunchPlace {
 public:
  // Does nothing where torch does not let us, or there is no place.
  explicit LaunchPlace(const Symbols& symbols) noexcept;
  // Whether what is put on this thread is found there and taken away again; torch is not trusted before. Throws
  // nothing.
  static bool self_test(const Symbols& symbols) noexcept;
  // The place that the work of this thread was asked for at; 0 when nobody said.
  static leadline_context read(const Symbols& symbols) noexcept;

  ~LaunchPlace() { close(); }
  LaunchPlace(const LaunchPlace&) = delete;
  LaunchPlace& operator=(const LaunchPlace&) = delete;
  void close() noexcept;
  // What it was for has ended on another thread, whose information is not ours to touch: the thread that it lies on
  // hands on no place any more, and takes it away at its next such operator, or keeps it while something else lies
  // above.
  void void_elsewhere() noexcept;

 private:
  LaunchPlace() = default;
  struct Information;
  void open(const Symbols& symbols, leadline_context place);
  static void drop_void(const Symbols& symbols);

  static thread_local std::shared_ptr<Information> t_latest;  // of this thread, not taken away yet
  void (*restore_)(std::shared_ptr<void>) = nullptr;          // not null while it is open
  std::shared_ptr<Information> information_;
};

}  // namespace leadline::torch
