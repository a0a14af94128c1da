#include "collector/forward_threads.h"

#include <algorithm>
#include <mutex>
#include <new>

#include "base/abandon.h"

namespace leadline {

ForwardThreads::Thread* ForwardThreads::known(uint64_t number) const noexcept {
  for (const std::atomic<Thread*>& way : sets_[number % kSets]) {
    Thread* thread = way.load(std::memory_order_acquire);
    if (thread != nullptr && thread->number.load(std::memory_order_acquire) == number) return thread;
  }
  return nullptr;
}

ForwardThreads::Forward ForwardThreads::find(uint64_t number, int64_t sequence) noexcept {
  if (number == 0) return {};
  Thread* thread = known(number);
  if (thread == nullptr) return {};
  const ThreadIndex tree{thread->tree.load(std::memory_order_acquire)};
  const NodeId node = thread->ring.find(sequence);
  // What was read is another thread's when the place changed hands meanwhile.
  if (node == kNoNode || thread->number.load(std::memory_order_acquire) != number) return {};
  return {tree, node};
}

ThreadIndex ForwardThreads::tree_of(uint64_t number) const noexcept {
  const Thread* thread = number == 0 ? nullptr : known(number);
  if (thread == nullptr) return kNoThread;
  const ThreadIndex tree{thread->tree.load(std::memory_order_acquire)};
  return thread->number.load(std::memory_order_acquire) == number ? tree : kNoThread;
}

ForwardThreads::Thread* ForwardThreads::take_unused() {
  if (unused_.empty()) {
    unused_.reserve(all_.size() + 1);  // so that forget() never allocates
    all_.push_back(std::make_unique<Thread>());
    return all_.back().get();
  }
  Thread* thread = unused_.back();
  unused_.pop_back();
  return thread;
}

ForwardThreads::Thread* ForwardThreads::begin(uint64_t number, ThreadIndex tree, bool* no_memory) noexcept {
  if (number == 0) return nullptr;
  const std::lock_guard guard(lock_);
  Thread* thread = known(number);
  if (thread != nullptr) {  // measured before, by a lane that was given up
    if (thread->ended) {
      ended_bytes_ -= thread->ring.held_bytes();
      ended_.erase(thread->place);
      thread->ended = false;
    }
    thread->tree.store(raw(tree), std::memory_order_release);
    return thread;
  }
  Set& set = sets_[number % kSets];
  const auto is_free = [](const std::atomic<Thread*>& way) { return way.load(std::memory_order_relaxed) == nullptr; };
  auto free_way = std::find_if(set.begin(), set.end(), is_free);
  if (free_way == set.end()) {
    const auto in_set = [&](const Thread* thread) {
      return thread->number.load(std::memory_order_relaxed) % kSets == number % kSets;
    };
    const auto oldest = std::find_if(ended_.begin(), ended_.end(), in_set);
    if (oldest == ended_.end()) return nullptr;
    forget(**oldest);
    free_way = std::find_if(set.begin(), set.end(), is_free);
  }
  try {
    thread = take_unused();
  } catch (const std::bad_alloc&) {
    if (no_memory != nullptr) *no_memory = true;
    return nullptr;
  }
  thread->ring.clear();
  thread->tree.store(raw(tree), std::memory_order_release);
  thread->number.store(number, std::memory_order_release);
  free_way->store(thread, std::memory_order_release);
  return thread;
}

void ForwardThreads::end(Thread& thread) noexcept {
  const std::lock_guard guard(lock_);
  if (thread.ended) return;
  try {
    thread.place = ended_.insert(ended_.end(), &thread);
  } catch (const std::bad_alloc&) {
    return;  // it stays as if it lived
  }
  thread.ended = true;
  ended_bytes_ += thread.ring.held_bytes();
  while (ended_.size() > kEnded || (ended_bytes_ > kEndedBytes && ended_.size() > 1)) forget(*ended_.front());
}

// An ended thread's place becomes free.
void ForwardThreads::forget(Thread& thread) noexcept {
  ended_bytes_ -= thread.ring.held_bytes();
  ended_.erase(thread.place);
  thread.ended = false;
  for (std::atomic<Thread*>& way : sets_[thread.number.load(std::memory_order_relaxed) % kSets]) {
    if (way.load(std::memory_order_relaxed) == &thread) way.store(nullptr, std::memory_order_release);
  }
  thread.number.store(0, std::memory_order_release);
  unused_.push_back(&thread);
}

size_t ForwardThreads::held_bytes() const noexcept {
  const std::lock_guard guard(lock_);
  size_t bytes = sizeof(sets_);
  for (const auto& thread : all_) bytes += sizeof(Thread) + thread->ring.held_bytes();
  return bytes;
}

void ForwardThreads::clear() noexcept {
  lock_.reset();
  for (Set& set : sets_) {
    for (std::atomic<Thread*>& way : set) way.store(nullptr, std::memory_order_relaxed);
  }
  abandon(all_);
  abandon(unused_);
  abandon(ended_);
  ended_bytes_ = 0;
}

}  // namespace leadline
