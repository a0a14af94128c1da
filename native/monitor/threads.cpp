// States of threads: made with a thread's first event, given back at its end, left alone in the child of a fork.
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <new>

#include "base/losses.h"
#include "base/membarrier.h"
#include "monitor/busy.h"
#include "monitor/monitor.h"
#include "monitor/this_thread.h"

namespace leadline {
namespace {

// A key of pthreads and no thread_local with a destructor: those run first and may emit still, and the key's destructor
// runs again for a state that was made after it.
struct ExitKey {
  pthread_key_t key{};
  bool there = false;
};

}  // namespace

constinit __attribute__((tls_model("initial-exec"))) thread_local ThreadState* t_state = nullptr;

void Monitor::give_back(ThreadState& state) noexcept {
  {
    const Busy busy(*this, state);
    if (Subscriber* const there = core(kAnyDomain)) there->on_thread_exit(state);
    forget_scopes(state);
  }
  t_state = nullptr;
  CallAnchors::follow(nullptr);
  state.alive.store(false, std::memory_order_release);  // the subscriber's part waits for the next thread
}

void Monitor::forget_scopes(ThreadState& state) noexcept {
  state.path.clear();
  state.operators_open = 0;
  state.unheard = 0;
  state.data.clear();
  state.published.leave(0);
}

void Monitor::bring_up_to_date(ThreadState& state) noexcept {
  const uint64_t version = version_.load(std::memory_order_acquire);
  const uint64_t changed = version ^ state.version;
  if ((changed & (kPauses - kGenerations)) != 0) state.subscriber = nullptr;
  if ((changed & (kPauses - 1)) != 0) {
    state.sample_began_ns = 0;
    forget_scopes(state);
  }
  state.version = version;
  follow_pause(state);
}

ThreadState* Monitor::new_thread() noexcept {
  static const ExitKey exit_key = [] {
    ExitKey made;
    made.there = pthread_key_create(&made.key, [](void* state) {
                   Monitor::instance().give_back(*static_cast<ThreadState*>(state));
                 }) == 0;
    return made;
  }();
  ThreadState* state = nullptr;
  // A state whose thread has ended serves again: programs that start threads without end stay bounded.
  for (ThreadState* old = threads_.load(std::memory_order_acquire); old != nullptr; old = old->next) {
    bool alive = false;
    if (!old->alive.load(std::memory_order_acquire) && old->alive.compare_exchange_strong(alive, true)) {
      state = old;
      break;
    }
  }
  if (state == nullptr) {
    try {
      state = new ThreadState(python_, &modules_);
    } catch (...) {
      losses().count(LossKind::kInternalError, 1, "out of memory for a thread's state");
      return nullptr;
    }
    state->version = version_.load(std::memory_order_acquire);
    state->next = threads_.load(std::memory_order_relaxed);
    while (!threads_.compare_exchange_weak(state->next, state, std::memory_order_release)) {
    }
  }
  if (!exit_key.there || pthread_setspecific(exit_key.key, state) != 0) {
    state->alive.store(false, std::memory_order_release);
    losses().count(LossKind::kInternalError, 1, "the end of a thread could not be followed, so it is not measured");
    return nullptr;
  }
  static std::atomic<uint64_t> lives{0};
  state->life = lives.fetch_add(1, std::memory_order_relaxed) + 1;
  state->tid.store(static_cast<uint64_t>(syscall(SYS_gettid)), std::memory_order_relaxed);
  state->data.begin_thread();
  follow_pause(*state);
  state->path.anchors().clear();
  CallAnchors::follow(&state->path.anchors());
  t_state = state;
  return state;
}

leadline_context Monitor::published() const noexcept {
  const ThreadState* state = t_state;
  return state == nullptr ? 0 : state->published.innermost();
}

leadline_status Monitor::threads(leadline_thread* threads, size_t* count) const noexcept {
  if (count == nullptr || (threads == nullptr && *count != 0)) return LEADLINE_ERROR_INVALID;
  const size_t room = *count;
  size_t needed = 0;
  for (const ThreadState* state = threads_.load(std::memory_order_acquire); state != nullptr; state = state->next) {
    if (!state->alive.load(std::memory_order_acquire)) continue;
    if (needed < room) threads[needed] = {state->tid.load(std::memory_order_relaxed), state->published.innermost()};
    ++needed;
  }
  *count = needed;
  return needed > room ? LEADLINE_ERROR_FULL : LEADLINE_OK;
}

const PublishedPlaces* Monitor::published_by(uint64_t tid) const noexcept {
  for (const ThreadState* state = threads_.load(std::memory_order_acquire); state != nullptr; state = state->next) {
    if (state->alive.load(std::memory_order_acquire) && state->tid.load(std::memory_order_relaxed) == tid)
      return &state->published;
  }
  return nullptr;
}

void Monitor::after_fork() noexcept {
  new (&change_) std::mutex();
  modules_.after_fork();
  // Threads that are not here may have been copied in the middle of a change, so nobody uses their states again.
  static ThreadState* abandoned = nullptr;  // reachable, so that leak checkers know that it is meant
  ThreadState* own = t_state;
  ThreadState** link = &abandoned;
  while (*link != nullptr) link = &(*link)->next;
  *link = threads_.load(std::memory_order_relaxed);
  while (*link != nullptr && *link != own) link = &(*link)->next;
  if (own != nullptr) {
    *link = own->next;
    own->next = nullptr;
    own->tid.store(static_cast<uint64_t>(syscall(SYS_gettid)), std::memory_order_relaxed);
  }
  threads_.store(own, std::memory_order_relaxed);
  reset_cost();
  if (!fence_needed_) fence_needed_ = !register_membarrier();
  forget_subscriber_state();
}

}  // namespace leadline
