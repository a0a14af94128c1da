#include "providers/cpu/handler.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>

#include "base/clock.h"
#include "base/losses.h"
#include "monitor/this_thread.h"
#include "providers/cpu/signal_stacks.h"

namespace leadline::cpu {
namespace {

constexpr size_t kMostBlocks = 1024;
constexpr uint32_t kMostCut = 4;
constexpr int64_t kExpensive = 200'000;  // nanoseconds of a sample, which deep stacks need
constexpr int64_t kShare = 20;           // expensive samples slow a thread by one part in so many, once they took
constexpr int64_t kUnpaid = 20'000'000;  // so long: the first walk of a thread or through a library is expensive, once
constexpr pthread_key_t kWithoutAllocation = 32;  // keys below it need no memory of the thread's own
constexpr size_t kRoom = 8192;                    // bytes of stack that taking a sample needs, with plenty to spare

struct Block {
  std::atomic<const SampledThread*> first{nullptr};
  std::atomic<size_t> count{0};
};

// A signal handler can reach only globals; all are lock-free.
std::array<Block, kMostBlocks> g_blocks;
std::atomic<const PythonSamples*> g_samples{nullptr};
std::atomic<const CounterPlan*> g_plan{nullptr};
std::atomic<bool> g_sampling{false};
std::atomic<bool> g_native{false};
std::atomic<pid_t> g_process{0};
std::atomic<int64_t> g_waiting{0};
std::atomic<int> g_signal{0};
__attribute__((tls_model("initial-exec"))) constinit thread_local SampledThread* t_sampled = nullptr;  // once known
pthread_key_t g_end_key;

SampledThread* ours(void* pointer) noexcept {
  const auto* const thread = static_cast<const SampledThread*>(pointer);
  for (const Block& block : g_blocks) {
    const SampledThread* const first = block.first.load(std::memory_order_acquire);
    if (first == nullptr) return nullptr;
    if (thread >= first && thread < first + block.count.load(std::memory_order_relaxed))
      return static_cast<SampledThread*>(pointer);
  }
  return nullptr;
}

pid_t own_tid() noexcept { return static_cast<pid_t>(syscall(SYS_gettid)); }

// nullptr: it is not sampled.
SampledThread* of_this_thread() noexcept {
  const pid_t tid = own_tid();
  const auto is_it = [tid](const SampledThread& one) { return one.tid.load(std::memory_order_acquire) == tid; };
  if (t_sampled != nullptr && is_it(*t_sampled)) return t_sampled;
  for (const Block& block : g_blocks) {
    const SampledThread* const first = block.first.load(std::memory_order_acquire);
    if (first == nullptr) break;
    for (size_t i = 0; i < block.count.load(std::memory_order_relaxed); ++i) {
      if (is_it(first[i])) return t_sampled = const_cast<SampledThread*>(first + i);
    }
  }
  return nullptr;
}

// Of the calling thread, without what taking samples took.
Usage program_usage(const SampledThread& thread) noexcept {
  return without(own_usage(), thread.own_minor.load(std::memory_order_relaxed),
                 thread.own_major.load(std::memory_order_relaxed));
}

// At the end of a thread that was sampled: all that it ran is known for the last time.
void on_end(void* pointer) {
  auto* const thread = static_cast<SampledThread*>(pointer);
  if (thread->tid.load(std::memory_order_relaxed) != own_tid()) return;
  thread->ran_at_end_ns.store(thread_cpu_ns(), std::memory_order_relaxed);
  thread->used_at_end = program_usage(*thread);
  thread->over.store(true, std::memory_order_release);
}

// Made when this library is loaded, when there still are keys whose values a handler can set without memory.
const bool g_end_known = pthread_key_create(&g_end_key, on_end) == 0 && g_end_key < kWithoutAllocation;

template <typename T>
void put_all(SampleRing& ring, const T* from, size_t count) noexcept {
  static_assert(sizeof(T) % sizeof(uint64_t) == 0);
  const auto* words = reinterpret_cast<const uint64_t*>(from);
  for (size_t left = count * sizeof(T) / sizeof(uint64_t); left > 0; --left) ring.put(*words++);
}

// Where the walk ended in code without unwind information inside of an operator, whoever books may find the way from
// there to the operator: he needs that part of the stack.
[[maybe_unused]] void keep_stack(const ThreadState& state, uintptr_t stack_end, const unwind::Registers& last,
                                 SampleHead* head) noexcept {
  constexpr uintptr_t kBeyond = 4096;  // of the frame that the operator lies in
  for (uint32_t level = static_cast<uint32_t>(head->levels); level-- > 0;) {
    const uintptr_t token = state.published.token(level);
    if (token <= last.sp || token >= stack_end) continue;
    const uintptr_t to = stack_end - token > kBeyond ? token + kBeyond : stack_end;
    const size_t words = (to - last.sp) / sizeof(uint64_t);
    if (words <= kMostStack) head->stack = words;
    head->gap_bp = last.bp;
    break;
  }
}

void take_native(SampledThread& thread, const ucontext_t& context, SampleHead* head) noexcept {
#ifdef __x86_64__
  const greg_t* const registers = context.uc_mcontext.gregs;
  const unwind::Registers from{static_cast<uintptr_t>(registers[REG_RIP]), static_cast<uintptr_t>(registers[REG_RSP]),
                               static_cast<uintptr_t>(registers[REG_RBP])};
  const bool main = thread.tid.load(std::memory_order_relaxed) == g_process.load(std::memory_order_relaxed);
  unwind::End end = unwind::End::kBroken;
  unwind::Registers last;
  const uintptr_t stack_end = unwind::stack_end(from.sp, main);
  head->native = unwind::walk(from, stack_end, thread.native.data(), kMostNative, &end, &last);
  head->end = static_cast<uint64_t>(end);
  const ThreadState* const state = t_state;
  if (end == unwind::End::kGap && state != nullptr && last.sp % 8 == 0) keep_stack(*state, stack_end, last, head);
#else
  (void)thread;
  (void)context;
  (void)head;
#endif
}

__attribute__((noinline)) void take(SampledThread& thread, int64_t weight_ns, const ucontext_t& context) noexcept {
  SampleHead head{};
  if (const CounterPlan* const counted = plan(); counted != nullptr) {
    thread.counted = {};
    if (counted->uses_usage()) put_usage(*counted, program_usage(thread), thread.counted.data());
    thread.files.read(*counted, thread.counted.data());
    head.counters = counted->words();
  }
  head.weight_ns = static_cast<uint64_t>(weight_ns);
  const ThreadState* const state = t_state;
  if (state != nullptr) {
    head.own = state->busy.load(std::memory_order_relaxed) & 1;
    head.levels = state->published.depth();
  }
  if (const PythonSamples* const samples = g_samples.load(std::memory_order_acquire); samples != nullptr) {
    thread.pages.forget();
    SampledStack stack{thread.frames, thread.selves, thread.runs};
    samples->capture(thread.pages, stack);
    // The interpreter is entering an evaluation: the time goes to the next sample. Not time and again, should one keep
    // its frames in another way.
    if (stack.cut && ++thread.cut < kMostCut) {
      thread.accounted_ns.fetch_sub(weight_ns, std::memory_order_relaxed);
      return;
    }
    thread.cut = 0;
    if (stack.cut || stack.frame_count > kMostFrames) losses().count(LossKind::kPythonFramesTruncated);
    head.frames = stack.frame_count < kMostFrames ? stack.frame_count : kMostFrames;
    head.selves = stack.self_count;
    head.runs = stack.run_count;
  }
  if (g_native.load(std::memory_order_relaxed)) {
    take_native(thread, context, &head);
  } else {
    head.runs = 0;
  }
  const size_t words = 1 + kHeadWords + head.levels * 3 + head.frames * 3 + head.selves * 3 + head.runs * 2 +
                       head.native * 3 + head.counters + head.stack;
  if (!thread.ring.begin(words)) {
    // Its time goes to the next sample.
    thread.accounted_ns.fetch_sub(weight_ns, std::memory_order_relaxed);
    losses().count(LossKind::kSamplesDropped, 1, "samples came faster than they were booked");
    return;
  }
  SampleRing& ring = thread.ring;
  for (const uint64_t word : std::bit_cast<std::array<uint64_t, kHeadWords>>(head)) ring.put(word);
  for (uint32_t level = 0; state != nullptr && level < head.levels; ++level) {
    ring.put(state->published.place(level));
    ring.put(state->published.anchor(level));
    ring.put(state->published.token(level));
  }
  put_all(ring, thread.frames.data(), head.frames);
  put_all(ring, thread.selves.data(), head.selves);
  put_all(ring, thread.runs.data(), head.runs);
  put_all(ring, thread.native.data(), head.native);
  put_all(ring, thread.counted.data(), head.counters);
  if (head.stack > 0) put_all(ring, reinterpret_cast<const uint64_t*>(thread.native[head.native - 1].sp), head.stack);
  g_waiting.fetch_add(1, std::memory_order_release);
  ring.end();
}

// Whether there is stack for a sample: alternate stacks may be as small as a signal's own frame.
bool has_room(const void* context) noexcept {
  const stack_t& stack = static_cast<const ucontext_t*>(context)->uc_stack;
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const auto bottom = reinterpret_cast<uintptr_t>(stack.ss_sp);
  const bool alternate = (stack.ss_flags & SS_DISABLE) == 0 && here >= bottom && here < bottom + stack.ss_size;
  return !alternate || here - bottom > kRoom;
}

// `least_ns`: what the thread must have run since the sample before for another one.
void sample(SampledThread& thread, const void* context, int64_t least_ns) noexcept {
  const int64_t now = thread_cpu_ns();
  const int64_t weight_ns = now - thread.accounted_ns.load(std::memory_order_relaxed);
  if (weight_ns < least_ns || !g_sampling.load(std::memory_order_acquire) || !has_room(context)) return;
  if (now < thread.paid_at_ns - kUnpaid * kShare) {
    losses().count(LossKind::kSamplesDropped, 1,
                   "walking so deep a stack took too long; the next samples were left out");
    return;
  }
  const CounterPlan* const counted = plan();
  const bool faults = counted != nullptr && counted->uses_usage();
  const Usage before = faults ? own_usage() : Usage{};
  if (weight_ns > 0) {
    thread.accounted_ns.fetch_add(weight_ns, std::memory_order_relaxed);
    take(thread, weight_ns, *static_cast<const ucontext_t*>(context));
  }
  watch_end(thread);
  thread.taken.fetch_add(1, std::memory_order_relaxed);
  if (faults) {
    const Usage after = own_usage();
    thread.own_minor.fetch_add(after.minor_faults - before.minor_faults, std::memory_order_relaxed);
    thread.own_major.fetch_add(after.major_faults - before.major_faults, std::memory_order_relaxed);
  }
  const int64_t after_ns = thread_cpu_ns();
  const int64_t took_ns = after_ns - now;
  if (took_ns > kExpensive) thread.paid_at_ns = std::max(thread.paid_at_ns, after_ns) + took_ns * kShare;
  thread.accounted_ns.fetch_add(took_ns, std::memory_order_relaxed);
  thread.handlers_ns.fetch_add(took_ns, std::memory_order_relaxed);
}

// A signal that somebody sent and nobody handles but us: the program dies of it when this handler has returned, as it
// would have unmeasured.
bool dies_of(int signal, const siginfo_t& info) noexcept {
  if (info.si_code != SI_USER && info.si_code != SI_QUEUE && info.si_code != SI_TKILL) return false;
  struct sigaction unhandled {};
  unhandled.sa_handler = SIG_DFL;
  sigaction(signal, &unhandled, nullptr);
  syscall(SYS_tgkill, getpid(), own_tid(), signal);
  return true;
}

// Where a task clock interrupts the thread too, for what it did in the kernel, which that clock does not see.
void on_timer(int signal, siginfo_t* info, void* context) {
  if (dies_of(signal, *info)) return;
  SampledThread* const thread = info->si_code == SI_TIMER ? ours(info->si_value.sival_ptr) : nullptr;
  if (thread == nullptr) return;  // somebody else's, who has no handler
  const int saved_errno = errno;
  if (thread->tid.load(std::memory_order_acquire) == own_tid()) {
    put_signal_stack_back(&static_cast<ucontext_t*>(context)->uc_stack);
    sample(*thread, context, thread->on_time_ns.load(std::memory_order_relaxed));
  }
  errno = saved_errno;
}

void on_task_clock(int signal, siginfo_t* info, void* context) {
  if (dies_of(signal, *info)) return;
  if (info->si_code <= 0) return;  // not from a file
  const int saved_errno = errno;
  SampledThread* const thread = of_this_thread();
  if (thread != nullptr && thread->on_time_ns.load(std::memory_order_relaxed) != 0) sample(*thread, context, 0);
  errno = saved_errno;
}

using Handler = void (*)(int, siginfo_t*, void*);

bool in_place(int signal, Handler handler) noexcept {
  struct sigaction now {};
  return signal != 0 && sigaction(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
         now.sa_sigaction == handler;
}

// False where the signal is the program's. Nothing interrupts a handler but its own faults: both write to one ring, and
// a handler of the program may never come back.
bool install(int signal, Handler handler) noexcept {
  struct sigaction now {};
  if (sigaction(signal, nullptr, &now) != 0) return false;
  if ((now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) return false;
  struct sigaction own {};
  own.sa_sigaction = handler;
  own.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigfillset(&own.sa_mask);
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT}) sigdelset(&own.sa_mask, fault);
  return sigaction(signal, &own, nullptr) == 0;
}

}  // namespace

bool handler_in_place() noexcept { return in_place(g_signal.load(), on_timer); }

int install_handler() noexcept {
  if (handler_in_place()) return g_signal.load();
  for (int signal = SIGRTMAX - 1; signal > SIGRTMIN; --signal) {
    if (!install(signal, on_timer)) continue;
    g_signal.store(signal);
    return signal;
  }
  return 0;
}

bool task_clock_handled() noexcept { return in_place(kTaskClockSignal, on_task_clock); }
bool handle_task_clock() noexcept {
  return kTaskClockSignal != 0 && (task_clock_handled() || install(kTaskClockSignal, on_task_clock));
}

void watch_end(SampledThread& thread) noexcept {
  if (thread.marked || !g_end_known) return;
  thread.marked = true;
  pthread_setspecific(g_end_key, &thread);
}

void set_samples(const PythonSamples* samples) noexcept { g_samples.store(samples, std::memory_order_release); }
void set_native(bool on) noexcept { g_native.store(on, std::memory_order_release); }
bool samples_native() noexcept { return g_native.load(std::memory_order_acquire); }
void set_plan(const CounterPlan* plan) noexcept { g_plan.store(plan, std::memory_order_release); }
const CounterPlan* plan() noexcept { return g_plan.load(std::memory_order_acquire); }
void set_sampling(bool on) noexcept {
  g_process.store(getpid(), std::memory_order_relaxed);
  g_sampling.store(on, std::memory_order_release);
}

void add_sampled(const SampledThread* first, size_t count) noexcept {
  for (Block& block : g_blocks) {
    if (block.first.load(std::memory_order_relaxed) != nullptr) continue;
    block.count.store(count, std::memory_order_relaxed);
    block.first.store(first, std::memory_order_release);
    return;
  }
}

std::atomic<int64_t>& waiting_samples() noexcept { return g_waiting; }

}  // namespace leadline::cpu
