// The signal handler that takes samples: on the thread that it interrupts, wherever that may be.
//
// It saves errno, allocates nothing, takes no lock, and reads what the interrupted code may be changing through the
// kernel only.
#pragma once

#include <signal.h>

#include <cstdint>

#include "providers/cpu/counters.h"
#include "providers/cpu/sampled_thread.h"
#include "stack/python_samples.h"

namespace leadline::cpu {

// Takes a real-time signal that nobody uses, and keeps it for the life of the process; another one where the program
// has put a handler of its own in its place since. 0: none is free.
int install_handler() noexcept;
bool handler_in_place() noexcept;
// The signal of task clocks: of those that wait in no queue, since the kernel falls back on one that ends the program
// where the queue is full. Nothing sends this one any more.
#ifdef SIGSTKFLT
inline constexpr int kTaskClockSignal = SIGSTKFLT;
#else
inline constexpr int kTaskClockSignal = 0;
#endif
// False where the program uses it.
bool handle_task_clock() noexcept;
bool task_clock_handled() noexcept;
// On the thread itself: at its end all that it ran and counted is written down. A sample asks for that as well.
void watch_end(SampledThread& thread) noexcept;
// How handlers read Python; nullptr: samples have no Python frames.
void set_samples(const PythonSamples* samples) noexcept;
// Whether samples have native frames.
void set_native(bool on) noexcept;
bool samples_native() noexcept;
// What samples count; nullptr: nothing. A plan that was set once stays as it is.
void set_plan(const CounterPlan* plan) noexcept;
const CounterPlan* plan() noexcept;
// Samples are taken, or time passes unsampled.
void set_sampling(bool on) noexcept;
// Whether a signal carries one of these; told by its address only.
void add_sampled(const SampledThread* first, size_t count) noexcept;
// Samples that have been taken and not been booked, of all threads.
std::atomic<int64_t>& waiting_samples() noexcept;

}  // namespace leadline::cpu
