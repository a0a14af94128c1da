#include "providers/nvidia/nvtx_ranges.h"

#include <algorithm>
#include <array>
#include <new>
#include <string_view>
#include <vector>

#include "gpu/measure.h"
#include "providers/nvidia/nvtx_text.h"

namespace leadline::nvidia {

std::atomic<bool> nvtx_active{false};

namespace {
bool names_operation(std::string_view name) noexcept { return name.starts_with("Thunk:#"); }
bool names_program(std::string_view name) noexcept {
  return name.starts_with("XlaModule:#") && name.find("program_id=") != std::string_view::npos;
}
}  // namespace

bool is_title(std::string_view name) noexcept { return names_operation(name) || names_program(name); }

namespace {

// Ranges of a thread that other threads have ended, for it to close. One per place in `inboxes`, which threads take and
// give back; a thread that finds none has ranges that only it can end.
class Inbox {
 public:
  bool take() noexcept {
    bool free = false;
    return used_.compare_exchange_strong(free, true, std::memory_order_acq_rel);
  }
  void give_back() noexcept {
    empty([](std::uint64_t) {});
    used_.store(false, std::memory_order_release);
  }
  // Any thread. False when there is no room.
  bool put(std::uint64_t id) noexcept {
    for (auto& slot : ended_) {
      std::uint64_t none = 0;
      if (!slot.compare_exchange_strong(none, id, std::memory_order_acq_rel)) continue;
      any_.store(true, std::memory_order_release);
      return true;
    }
    return false;
  }
  // The owner.
  template <class Close>
  void empty(const Close& close) noexcept {
    if (!any_.load(std::memory_order_relaxed) || !any_.exchange(false, std::memory_order_acq_rel)) return;
    for (auto& slot : ended_) {
      if (const std::uint64_t id = slot.exchange(0, std::memory_order_acq_rel); id != 0) close(id);
    }
  }

 private:
  std::atomic<bool> used_{false};
  std::atomic<bool> any_{false};
  std::array<std::atomic<std::uint64_t>, 32> ended_{};
};

constexpr std::uint32_t kThreads = 1024;
std::array<Inbox, kThreads> inboxes;

// An id names its owner: 16 bits of the thread, 47 that count, and a 1, so that it is never the address a framework
// uses as its own token.
std::atomic<std::uint64_t> next_range{1};
constexpr int kOwnerShift = 48;
std::uint64_t new_id(std::uint32_t owner) noexcept {
  const std::uint64_t number = next_range.fetch_add(1, std::memory_order_relaxed);
  return std::uint64_t{owner} << kOwnerShift | (number << 1 & ((std::uint64_t{1} << kOwnerShift) - 1)) | 1;
}
const void* token_of(std::uint64_t id) noexcept { return reinterpret_cast<const void*>(id); }

// A range the thread has open, pushed or started. Regions nest, so one that ends inside another stays until that one
// ends.
struct Open {
  const NvtxDomain* domain;
  std::uint64_t id;  // 0: not shown
  bool started;      // by start, so no pop ends it
  bool ended;
  bool title;  // of XLA's: a phase
};

struct ThreadRanges {
  std::uint32_t number = kThreads;
  std::vector<Open> open;
};
thread_local constinit ThreadRanges* t_ranges = nullptr;
thread_local constinit bool t_gone = false;

struct AtThreadEnd {
  ~AtThreadEnd() {
    if (t_ranges && t_ranges->number < kThreads) inboxes[t_ranges->number].give_back();
    delete t_ranges;
    t_ranges = nullptr;
    t_gone = true;
  }
};

void no_memory() noexcept { gpu::count_loss(LossKind::kInternalError, 1, "No memory to keep an NVTX range."); }

// The calling thread's; nullptr, and a loss, where there is no memory, and at the end of the thread.
ThreadRanges* ranges_of_thread() noexcept {
  if (t_ranges || t_gone) return t_ranges;
  auto* ranges = new (std::nothrow) ThreadRanges;
  if (!ranges) {
    no_memory();
    return nullptr;
  }
  for (std::uint32_t i = 0; i < kThreads && ranges->number == kThreads; ++i) {
    if (inboxes[i].take()) ranges->number = i;
  }
  thread_local AtThreadEnd at_end;
  static_cast<void>(at_end);
  t_ranges = ranges;
  return ranges;
}

bool room_for_one(ThreadRanges& thread) noexcept try {
  constexpr std::size_t kFirst = 64;
  if (thread.open.size() == thread.open.capacity()) thread.open.reserve(std::max(kFirst, thread.open.size() * 2));
  return true;
} catch (...) {
  no_memory();
  return false;
}

void emit(leadline_phase phase, const char* name, const char* detail, std::uint64_t id, bool title) noexcept {
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_REGION;
  event.phase = phase;
  event.time_ns = leadline_monitor_now();
  event.token = token_of(id);
  event.of.region.name = name;
  event.of.region.detail = detail;
  event.of.region.kind = title ? LEADLINE_REGION_PHASE : LEADLINE_REGION_USER;
  event.of.region.flags = title ? unsigned{LEADLINE_REGION_FLAG_INSIDE} : 0u;
  leadline_monitor_emit(&event);
}

void count_unordered() noexcept {
  gpu::count_loss(LossKind::kRangeUnordered, 1,
                  "An NVTX range did not end inside the range around it, or not on its thread; its time runs until the "
                  "ranges in it have ended.");
}

using Place = std::vector<Open>::iterator;
void close(ThreadRanges& thread, Place range) noexcept {
  const auto shown = [](const Open& open) { return open.id != 0; };
  if (shown(*range) && std::any_of(std::next(range), thread.open.end(), shown)) {
    range->ended = true;
    count_unordered();
    return;
  }
  if (shown(*range)) emit(LEADLINE_END, "", nullptr, range->id, range->title);
  thread.open.erase(range);
  while (!thread.open.empty() && thread.open.back().ended) {
    emit(LEADLINE_END, "", nullptr, thread.open.back().id, thread.open.back().title);
    thread.open.pop_back();
  }
}

void close(ThreadRanges& thread, std::uint64_t id) noexcept {
  const Place range = std::find_if(thread.open.begin(), thread.open.end(),
                                   [&](const Open& open) { return open.id == id && !open.ended; });
  if (range != thread.open.end()) close(thread, range);
}

void close_those_ended_elsewhere(ThreadRanges& thread) noexcept {
  if (thread.number >= kThreads) return;
  inboxes[thread.number].empty([&](std::uint64_t id) { close(thread, id); });
}

// Whether a program with a number is running on the thread: operations of what XLA tries out have no lines.
bool in_program(const ThreadRanges& thread) noexcept {
  return std::any_of(thread.open.begin(), thread.open.end(), [](const Open& open) { return open.title; });
}

// Without an id when nothing is shown for it.
Open begin(ThreadRanges& thread, NvtxDomain& domain, const char* name, const nvtx::EventAttributes* a) noexcept {
  Open open{&domain, 0, false, false, false};
  domain.ranges.fetch_add(1, std::memory_order_relaxed);
  if (!nvtx_active.load(std::memory_order_acquire)) return open;
  const char* shown = name && *name ? name : "(unnamed range)";
  open.title = domain.of_xla && domain.titles.load(std::memory_order_relaxed) &&
               (names_program(shown) || (names_operation(shown) && in_program(thread)));
  if (!open.title && domain.skipped.load(std::memory_order_relaxed)) return open;
  close_those_ended_elsewhere(thread);
  open.id = new_id(thread.number);
  if (open.title) {
    domain.titled.fetch_add(1, std::memory_order_relaxed);
    emit(LEADLINE_BEGIN, shown, nullptr, open.id, true);
    return open;
  }
  bool varies = false;
  std::string_view category;
  if (a) {
    category = domain.category(a->category);
    varies = a->payload_type != nvtx::PayloadType::kNone &&
             NvtxNames::instance().payload_varies(domain, shown, a->payload.u64);
  }
  RangeDetail detail;
  append_detail(&detail, domain.name(), category, a, varies);
  emit(LEADLINE_BEGIN, shown, detail.empty() ? nullptr : detail.c_str(), open.id, false);
  return open;
}

int level(const ThreadRanges& thread, const NvtxDomain& domain) noexcept {
  return static_cast<int>(std::count_if(thread.open.begin(), thread.open.end(), [&](const Open& open) {
    return open.domain == &domain && !open.started && !open.ended;
  }));
}

}  // namespace

void ranges_after_fork() noexcept {
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    if (!t_ranges || t_ranges->number != i) inboxes[i].give_back();
  }
}

int range_push(NvtxDomain& domain, const char* name, const nvtx::EventAttributes* attributes) noexcept {
  ThreadRanges* thread = ranges_of_thread();
  if (!thread || !room_for_one(*thread)) return -1;
  thread->open.push_back(begin(*thread, domain, name, attributes));
  return level(*thread, domain) - 1;
}

int range_pop(NvtxDomain& domain) noexcept {
  ThreadRanges* thread = t_ranges;
  if (!thread) return -1;
  for (auto range = thread->open.rbegin(); range != thread->open.rend(); ++range) {
    if (range->domain != &domain || range->started || range->ended) continue;
    close(*thread, std::next(range).base());
    close_those_ended_elsewhere(*thread);
    return level(*thread, domain);
  }
  return -1;  // a pop without its push; -2 would mean that no tool tracks
}

std::uint64_t range_start(NvtxDomain& domain, const char* name, const nvtx::EventAttributes* attributes) noexcept {
  ThreadRanges* thread = ranges_of_thread();
  if (!thread || !room_for_one(*thread)) return 0;
  Open open = begin(*thread, domain, name, attributes);
  open.started = true;
  if (open.id != 0) thread->open.push_back(open);
  return open.id;
}

void range_end(std::uint64_t id) noexcept {
  if (id == 0) return;
  const auto owner = static_cast<std::uint32_t>(id >> kOwnerShift);
  const bool mine = t_ranges && std::any_of(t_ranges->open.begin(), t_ranges->open.end(),
                                            [&](const Open& open) { return open.id == id; });
  if (mine) return close(*t_ranges, id);
  if (t_ranges && t_ranges->number == owner) return;  // ended before
  if (owner < kThreads) inboxes[owner].put(id);       // with no room, and else, it ends with what is around it
  count_unordered();
}

}  // namespace leadline::nvidia
