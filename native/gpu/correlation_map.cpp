#include "gpu/correlation_map.h"

namespace leadline::gpu {
namespace {

// Each of these numbers is written by one thread and read by any.
template <class Number, class Change>
void change(std::atomic<Number>& number, Change by) noexcept {
  number.store(number.load(std::memory_order_relaxed) + static_cast<Number>(by), std::memory_order_release);
}

}  // namespace

CorrelationMap::CorrelationMap() { entries_.reserve(1u << 12); }

std::uint64_t CorrelationMap::outstanding() const noexcept {
  // In this order what is collected meanwhile is counted twice rather than not at all.
  const std::uint64_t collected = collected_.load(std::memory_order_acquire);
  const std::uint64_t written = log_->works();
  return waiting_.load(std::memory_order_acquire) + (written - collected);
}

void CorrelationMap::collect() noexcept {
  log_->drain([this](std::uint32_t thread, const LogEntry& entry) {
    const bool is_work = entry.what == LogEntry::What::kLaunchWithWork || entry.what == LogEntry::What::kExpected;
    try {
      take(thread, entry);
    } catch (...) {
      change(forgotten_, 1);
    }
    if (is_work) change(collected_, 1);
  });
}

void CorrelationMap::take(std::uint32_t thread, const LogEntry& entry) {
  switch (entry.what) {
    case LogEntry::What::kPlace:
      return take_place(thread, entry);
    case LogEntry::What::kLaunch:
    case LogEntry::What::kLaunchWithWork:
      return take_launch(thread, entry);
    case LogEntry::What::kExpected:
      if (Entry* const found = entry_of(entry.id); found != nullptr && found->state == State::kDone) await(*found);
      return;
    case LogEntry::What::kCancelled:
      if (Entry* const found = entry_of(entry.id); found != nullptr && found->state != State::kDone) done(*found);
      return;
  }
}

void CorrelationMap::take_place(std::uint32_t thread, const LogEntry& entry) {
  Thread& of = thread_at(thread);
  if (of.places.size() - of.first_place >= kMostPlaces) {
    ++of.first_place;
    change(forgotten_, 1);
    drop_places(of);
  }
  of.places.push_back({entry.time_ns, entry.context});
}

void CorrelationMap::take_launch(std::uint32_t thread, const LogEntry& entry) {
  thread_at(thread);
  forget(entry.id);  // the vendor's numbers have gone round
  const std::uint32_t row = new_row();
  try {
    rows_.insert(entry.id, row);
  } catch (...) {
    free_row(row);
    throw;
  }
  Entry& made = entries_[row];
  made.launch = {entry.context, entry.time_ns, thread, entry.kind, entry.outer, entry.paused};
  made.id = entry.id;
  made.state = State::kDone;
  queue(row);
  if (entry.what == LogEntry::What::kLaunchWithWork) await(made);
  Thread& of = threads_[thread];
  if (of.first == row) pass(of);
}

CorrelationMap::Thread& CorrelationMap::thread_at(std::uint32_t thread) {
  if (thread >= threads_.size()) threads_.resize(thread + 1);
  return threads_[thread];
}

CorrelationMap::Entry* CorrelationMap::entry_of(std::uint32_t id) noexcept {
  const std::uint32_t row = rows_.find(id);
  return row == RowsById::kNone ? nullptr : &entries_[row];
}

std::uint32_t CorrelationMap::new_row() {
  if (free_ == kNowhere) {
    if (entries_.size() >= kMost) {
      give_up_oldest();
    } else {
      entries_.emplace_back();
      table_bytes_.store(entries_.capacity() * sizeof(Entry) + rows_.held_bytes(), std::memory_order_relaxed);
      return static_cast<std::uint32_t>(entries_.size() - 1);
    }
  }
  const std::uint32_t row = free_;
  free_ = entries_[row].next;
  return row;
}

void CorrelationMap::free_row(std::uint32_t row) noexcept {
  entries_[row].is_queued = false;
  entries_[row].next = free_;
  free_ = row;
}

void CorrelationMap::queue(std::uint32_t row) noexcept {
  Entry& entry = entries_[row];
  Thread& thread = threads_[entry.launch.thread];
  entry.next = kNowhere;
  entry.is_queued = true;
  (thread.first == kNowhere ? thread.first : entries_[thread.last].next) = row;
  thread.last = row;
}

void CorrelationMap::await(Entry& entry) noexcept {
  entry.state = State::kWaiting;
  change(waiting_, 1);
  if (!entry.is_queued) queue(static_cast<std::uint32_t>(&entry - entries_.data()));
}

void CorrelationMap::done(Entry& entry) noexcept {
  if (entry.state == State::kWaiting) change(waiting_, -1);
  entry.state = State::kDone;
  Thread& thread = threads_[entry.launch.thread];
  if (entry.is_queued && thread.first == static_cast<std::uint32_t>(&entry - entries_.data())) pass(thread);
}

// Lets go of what the thread's launches no longer wait for, from the oldest on.
void CorrelationMap::pass(Thread& thread) noexcept {
  while (thread.first != kNowhere) {
    const std::uint32_t row = thread.first;
    Entry& entry = entries_[row];
    const bool is_lost = entry.state == State::kWaiting && now_ns_ - entry.launch.start_ns > kLostNs;
    const bool is_whole = entry.state == State::kPartly && now_ns_ - entry.last_record_ns > kGraphRestNs;
    if (is_whole) entry.state = State::kDone;
    if (entry.state != State::kDone && !is_lost) return;
    thread.first = entry.next;
    entry.is_queued = false;
    rows_.find(entry.id) == row ? keep_readable(entry.id) : free_row(row);
  }
}

void CorrelationMap::keep_readable(std::uint32_t id) noexcept {
  if (readable_count_ == kReadable) {
    const std::uint32_t oldest = readable_[readable_begin_];
    readable_begin_ = (readable_begin_ + 1) % kReadable;
    --readable_count_;
    if (const Entry* const entry = entry_of(oldest); entry != nullptr && !entry->is_queued) forget(oldest);
  }
  readable_[(readable_begin_ + readable_count_++) % kReadable] = id;
}

// Of a launch that is in its thread's queue the row stays until its turn comes.
void CorrelationMap::forget(std::uint32_t id) noexcept {
  const std::uint32_t row = rows_.find(id);
  if (row == RowsById::kNone) return;
  Entry& entry = entries_[row];
  rows_.erase(id);
  if (entry.state == State::kWaiting) {
    change(waiting_, -1);
    change(forgotten_, 1);
  }
  entry.state = State::kDone;
  if (!entry.is_queued) free_row(row);
}

void CorrelationMap::give_up_oldest() noexcept {
  Thread* oldest = nullptr;
  const auto start_of = [this](const Thread& thread) { return entries_[thread.first].launch.start_ns; };
  for (Thread& thread : threads_) {
    if (thread.first == kNowhere) continue;
    if (oldest == nullptr || start_of(thread) < start_of(*oldest)) oldest = &thread;
  }
  if (oldest == nullptr) return;  // not so: there are fewer readable ones than rows
  const std::uint32_t row = oldest->first;
  Entry& entry = entries_[row];
  oldest->first = entry.next;
  entry.is_queued = false;
  rows_.find(entry.id) == row ? forget(entry.id) : free_row(row);
  pass(*oldest);
}

std::optional<Launch> CorrelationMap::get(std::uint32_t id, Record record) noexcept {
  Entry* entry = entry_of(id);
  if (entry == nullptr) {
    collect();
    entry = entry_of(id);
  }
  if (entry == nullptr) return std::nullopt;
  const Launch launch = entry->launch;
  if (record == Record::kOther) return launch;
  if (launch.kind != LEADLINE_GPU_GRAPH_LAUNCH || record == Record::kWholeGraph) {
    if (entry->state != State::kDone) done(*entry);
  } else if (entry->state != State::kDone) {
    if (entry->state == State::kWaiting) change(waiting_, -1);
    entry->state = entry->is_queued ? State::kPartly : State::kDone;
    entry->last_record_ns = now_ns_;
  }
  return launch;
}

std::int64_t CorrelationMap::watermark() noexcept {
  // Before the logs are read: what is written to them later begins on a device later.
  now_ns_ = leadline_monitor_now();
  collect();
  std::int64_t until_ns = now_ns_;
  for (Thread& thread : threads_) {
    pass(thread);
    if (thread.first != kNowhere) until_ns = std::min(until_ns, entries_[thread.first].launch.start_ns);
  }
  return until_ns - kClockSlackNs;
}

void CorrelationMap::forget_places_before(std::int64_t time_ns) noexcept {
  for (Thread& thread : threads_) {
    std::size_t& first = thread.first_place;
    while (first + 1 < thread.places.size() && thread.places[first + 1].time_ns <= time_ns) ++first;
    drop_places(thread);
  }
}

void CorrelationMap::drop_places(Thread& thread) noexcept {
  if (thread.first_place <= thread.places.size() / 2) return;
  thread.places.erase(thread.places.begin(), thread.places.begin() + static_cast<std::ptrdiff_t>(thread.first_place));
  thread.first_place = 0;
}

}  // namespace leadline::gpu
