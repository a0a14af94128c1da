// Threads that have had no event of their own: who samples them asks for their place. With its first event such a
// thread takes over the tree that was made for it.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <string>

#include "base/clock.h"
#include "collector/collector.h"

namespace leadline {
namespace {

std::string own_name(uint64_t tid) {
  if (tid == static_cast<uint64_t>(getpid())) return "main";
  char text[16] = {};
  pthread_getname_np(pthread_self(), text, sizeof text);
  return text;
}

// Whoever samples a thread says how long it ran, but on a busy machine not at once; of one that is sampled no more
// nobody does.
constexpr int64_t kGoneNs = 10'000'000'000;

}  // namespace

// Of the calling thread. Throws std::bad_alloc.
ThreadTree& Collector::tree_for(uint64_t tid) {
  {
    const std::lock_guard hold(lanes_busy_);
    const auto found =
        std::find_if(silent_.begin(), silent_.end(), [tid](const Silent& silent) { return silent.tid == tid; });
    if (found != silent_.end()) {
      ThreadTree* const tree = found->tree;
      const int64_t ran = ran_ns(*found, thread_cpu_ns());
      tree->stats().looked_at(ran, measured_ns(now_ns()));
      silent_.erase(found);
      return *tree;
    }
  }
  return trees_.create(tid, own_name(tid));
}

leadline_context Collector::thread_place(uint64_t tid, std::string_view name, clockid_t cpu, bool new_born) noexcept {
  try {
    const std::lock_guard hold(lanes_busy_);
    for (const auto& lane : lanes_) {
      if (lane->alive.load(std::memory_order_relaxed) && lane->tree->tid() == tid)
        return lane->token(lane->tree->root());
    }
    const auto there =
        std::find_if(silent_.begin(), silent_.end(), [tid](const Silent& silent) { return silent.tid == tid; });
    if (there != silent_.end()) {
      // The number may have gone to another thread while nobody looked; that one has run less.
      if (thread_cpu_ns(cpu) >= there->seen_cpu_ns)
        return packed_place(number_, there->tree->index(), there->tree->root());
      trees_.retire(*there->tree);
      silent_.erase(there);
    }
    silent_.reserve(silent_.size() + 1);
    ThreadTree& tree = trees_.create(tid, name);
    const int64_t seen_ns = measured_ns(now_ns());
    const int64_t seen_cpu_ns = thread_cpu_ns(cpu);
    const int64_t ran_ns = std::max<int64_t>(seen_cpu_ns, 0);
    int64_t never = 0;
    // One that was not there a moment ago has lived for at least as long as it ran.
    const int64_t first_ns = seen_ns - (new_born ? ran_ns : 0);
    tree.stats().first_ns.compare_exchange_strong(never, first_ns, std::memory_order_relaxed);
    // A tree may go on that of a thread that has ended.
    const int64_t before_ns = tree.stats().cpu_ns.load(std::memory_order_relaxed);
    silent_.push_back({tid, &tree, cpu, (new_born ? 0 : ran_ns) - before_ns, ran_ns, seen_cpu_ns});
    return packed_place(number_, tree.index(), tree.root());
  } catch (const std::bad_alloc&) {
    losses().count(LossKind::kInternalError, 1, "out of memory for a thread's tree");
    return 0;
  }
}

void Collector::thread_ran(uint64_t tid, int64_t cpu_ns, bool over) noexcept {
  const std::lock_guard hold(lanes_busy_);
  const auto found =
      std::find_if(silent_.begin(), silent_.end(), [tid](const Silent& silent) { return silent.tid == tid; });
  if (found == silent_.end()) return;
  found->tree->stats().looked_at(std::max<int64_t>(ran_ns(*found, cpu_ns), 0), measured_ns(now_ns()));
  found->seen_cpu_ns = cpu_ns;
  if (!over) return;
  trees_.retire(*found->tree);
  silent_.erase(found);
}

// Both under lanes_busy_.
int64_t Collector::ran_ns(const Silent& silent, int64_t cpu_ns) const noexcept {
  const bool stands = paused_.load(std::memory_order_relaxed) && silent.cpu_stands_ns >= 0;
  return (stands ? silent.cpu_stands_ns : cpu_ns) - silent.cpu_begin_ns;
}

void Collector::refresh_silent() noexcept {
  const int64_t now = now_ns();
  for (Silent& silent : silent_) {
    const int64_t cpu_ns = thread_cpu_ns(silent.cpu);
    if (cpu_ns < 0) {
      if (silent.seen_cpu_ns >= 0 && silent.gone_since_ns == 0) silent.gone_since_ns = now;
      continue;
    }
    silent.seen_cpu_ns = cpu_ns;
    silent.tree->stats().looked_at(ran_ns(silent, cpu_ns), measured_ns(now_ns()));
  }
  std::erase_if(silent_, [this, now](const Silent& silent) {
    if (silent.gone_since_ns == 0 || now - silent.gone_since_ns < kGoneNs) return false;
    trees_.retire(*silent.tree);
    return true;
  });
}

}  // namespace leadline
