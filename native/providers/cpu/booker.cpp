#include "providers/cpu/booker.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <new>

#include "base/losses.h"
#include "monitor/monitor.h"
#include "providers/cpu/handler.h"
#include "unwind/gap.h"

namespace leadline::cpu {
namespace {

constexpr std::string_view kOwn = "[Leadline]";
constexpr std::string_view kForward = "forward";

// One less at its end.
struct Counted {
  explicit Counted(std::atomic<int64_t>& of) noexcept : count(of) {}
  ~Counted() { count.fetch_sub(1, std::memory_order_release); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  std::atomic<int64_t>& count;
};

}  // namespace

CallPath& Booker::path_of(SampledThread& thread) {
  if (thread.path == nullptr) {
    thread.path =
        std::make_unique<CallPath>(samples_ == nullptr ? nullptr : samples_->source, &Monitor::instance().modules());
  }
  return *thread.path;
}

void Booker::book(SampledThread& thread) noexcept {
  try {
    while (thread.ring.take(&words_)) {
      // It waits until it is booked: a code object that died in the middle would be looked at all the same.
      const Counted waits(waiting_samples());
      book(thread, words_);
    }
  } catch (...) {
    losses().count(LossKind::kInternalError, 1, "a CPU sample could not be recorded because memory ran out");
    if (thread.path != nullptr) thread.path->clear();
  }
}

// As the handler has written it: see SampleHead.
void Booker::read(const std::vector<uint64_t>& words, SampleHead* head) {
  std::array<uint64_t, kHeadWords> first;
  std::copy_n(words.begin(), kHeadWords, first.begin());
  *head = std::bit_cast<SampleHead>(first);
  const uint64_t* at = words.data() + kHeadWords;
  const auto fill = [&at](auto* to, uint64_t count) {
    to->resize(count);
    if (count == 0) return;
    std::memcpy(static_cast<void*>(to->data()), at, count * sizeof((*to)[0]));
    at += count * sizeof((*to)[0]) / sizeof(uint64_t);
  };
  fill(&levels_, head->levels);
  fill(&frames_, head->frames);
  fill(&selves_, head->selves);
  fill(&runs_, head->runs);
  fill(&native_, head->native);
  fill(&counted_, head->counters);
  fill(&stack_, head->stack);
  gap_bp_ = head->gap_bp;
  end_ = static_cast<unwind::End>(head->end);
}

void Booker::book(SampledThread& thread, const std::vector<uint64_t>& words) {
  SampleHead head{};
  read(words, &head);
  thread.unbooked_ns += static_cast<int64_t>(head.weight_ns);
  if (!counted_.empty()) count(thread, counted_.data());
  if (samples_ != nullptr) drop_strangers();
  leadline_context place = place_of(thread);
  if (head.own != 0 && !measuring_) place = add_own(thread, place);
  add(thread, place, 0);
}

// A frame that was read in the middle of a change may hold anything; what lies inside of it is not to be trusted. Code
// objects that were found good stay so until one dies.
void Booker::drop_strangers() {
  const std::atomic<uint64_t>* const freed = samples_->source->codes_freed;
  const uint64_t now = freed == nullptr ? 0 : freed->load(std::memory_order_acquire);
  if (now != freed_ || freed == nullptr) good_codes_.clear();
  freed_ = now;
  for (size_t i = frames_.size(); i-- > 0;) {
    const uintptr_t code = frames_[i].code;
    if (good_codes_.contains(code)) continue;
    if (samples_->is_code(code)) {
      good_codes_.insert(code);
      continue;
    }
    frames_.erase(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    uint64_t cut = i + 1;
    for (SampledRun& run : runs_) {
      const uint64_t here = std::min(cut, run.frames);
      run.frames -= here;
      cut -= here;
    }
    losses().count(LossKind::kPythonFramesTruncated, 1, "a Python frame that was being made or left was cut");
    return;
  }
}

// The innermost scope whose Python frame the sample has met: the scopes of a coroutine that is suspended, or of a stack
// that was exchanged for another, are not around what ran.
Booker::Base Booker::base_of(SampledThread& thread) {
  Base base;
  base.place = thread.root;
  for (size_t level = levels_.size(); level-- > 0;) {
    const Level& scope = levels_[level];
    const bool known = scope.anchor != PublishedPlaces::kUnknown;
    const uintptr_t anchor = known ? scope.anchor & ~(PublishedPlaces::kInside | PublishedPlaces::kBelowModule) : 0;
    const bool inside = known && (scope.anchor & PublishedPlaces::kInside) != 0;
    size_t outside = 0;
    if (!known) {
      outside = frames_.empty() ? 0 : path_of(thread).entries().size();  // no frame of it is known to lie inside
    } else if (anchor != 0 && !frames_.empty()) {
      outside = path_of(thread).entries_outside(anchor, inside);
      if (outside == kNotAligned) continue;
    }
    return {scope.place, outside, known && (scope.anchor & PublishedPlaces::kBelowModule) != 0, scope.token};
  }
  return base;
}

leadline_context Booker::place_of(SampledThread& thread) {
  measuring_ = false;
  if (!frames_.empty()) {
    CallPath& path = path_of(thread);
    samples_->show(frames_, selves_);
    path.sync();
    path.take_moved();
    path.departed().clear();
  }
  const Base base = base_of(thread);
  if (native_.empty() && frames_.empty()) return base.place;
  cross_gap(base.token);
  weave();
  const uintptr_t lowest = native_.empty() ? 0 : native_.front().sp;
  const uintptr_t highest = native_.empty() ? 0 : std::max(native_.back().cfa, native_.back().sp);
  const bool by_token = base.token >= lowest && base.token < highest;
  leadline_context place = base.place;
  bool in_module = base.below_module;
  bool inside = base.first_entry == 0;
  bool leading = base.place == thread.root;  // what called the program or the thread is no part of it
  for (size_t i = woven_.size(); i-- > 0;) {
    const Piece& piece = woven_[i];
    if (!piece.is_native) {
      const CallPath& path = path_of(thread);
      const size_t from = piece.at == 0 ? 0 : path.entries_up_to(piece.at - 1);
      const size_t to = path.entries_up_to(piece.at);
      place = add_entries(thread, place, std::max(from, base.first_entry), to, &in_module);
      inside = inside || to >= base.first_entry;
      leading = false;
    } else if (piece.at == kGap) {
      if (inside && !by_token) place = add_gap(place);
    } else {
      const unwind::NativeFrame& frame = native_[piece.at];
      const uintptr_t border = frame.cfa == 0 ? frame.sp : frame.cfa;
      if (by_token ? border > base.token : !inside) continue;
      const Image* const image = images_.find(frame.pc);
      leading = leading && is_beginning(image);
      const bool is_leaf = piece.at == 0;
      if (!measuring_ && (is_observing(image, frame.pc - (is_leaf ? 0 : 1)) || (is_leaf && is_own(image)))) {
        measuring_ = true;
        place = add_own(thread, place);
      }
      if (leading || (!all_native_ && (measuring_ || is_interpreter(image) || is_own(image)))) continue;
      place = add_native(place, frame, image, is_leaf);
    }
  }
  return place;
}

// Where the walk ended in code without unwind information below an operator, and the way to that operator can be
// checked: as if it had not ended.
void Booker::cross_gap(uintptr_t anchor) {
  if (end_ != unwind::End::kGap || native_.empty() || stack_.empty() || anchor == 0) return;
  const unwind::NativeFrame last = native_.back();
  const auto function = [](void* user, uintptr_t pc) -> unwind::FunctionRange {
    auto& self = *static_cast<Booker*>(user);
    const Image* const image = self.images_.find(pc);
    return image == nullptr ? unwind::FunctionRange{} : self.functions_.at(*image, pc);
  };
  const unwind::StackCopy copy{last.sp, reinterpret_cast<const unsigned char*>(stack_.data()),
                               stack_.size() * sizeof(uint64_t)};
  const std::vector<unwind::NativeFrame> found =
      unwind::cross_gap({last.pc, last.sp, gap_bp_}, native_.size() == 1, copy, anchor, function, this);
  if (found.empty()) return;
  native_.pop_back();
  native_.insert(native_.end(), found.begin(), found.end());
  end_ = unwind::End::kOutermost;
  ++crossed_;
}

// Leaf first. An evaluation of the interpreter is its Python frames.
void Booker::weave() {
  woven_.clear();
  size_t frame = 0;
  const auto emit_python = [&](size_t count) {
    for (; count > 0 && frame < frames_.size(); --count, ++frame) woven_.push_back({false, frames_.size() - 1 - frame});
  };
  size_t run = 0;
  for (size_t i = 0; i < native_.size(); ++i) {
    if (run < runs_.size() && native_[i].sp <= runs_[run].home && runs_[run].home < native_[i].cfa) {
      emit_python(runs_[run++].frames);
    } else {
      woven_.push_back({true, i});
    }
  }
  const bool crossed =
      end_ == unwind::End::kOutermost && !stack_.empty();  // what lies around the operator was not looked at
  const bool cut = !native_.empty() && !crossed && (end_ != unwind::End::kOutermost || run < runs_.size());
  if (cut) {
    woven_.push_back({true, kGap});
    ++gaps_;
  }
  emit_python(frames_.size());
}

// The path says where the forward pass begins for the thread as a whole; for a scope that begins below a module, and
// for one whose inside counts as outermost, that may be elsewhere.
leadline_context Booker::add_entries(SampledThread& thread, leadline_context place, size_t from, size_t to,
                                     bool* in_module) {
  CallPath& path = path_of(thread);
  for (size_t i = from; i < to; ++i) {
    const PathFrameId id = path.entries()[i].frame;
    const PathFrame& frame = path.frames()[id];
    if (frame.kind == FrameKind::kPhase && frame.name == kForward) {
      if (*in_module) continue;
      *in_module = true;
    } else if (frame.kind == FrameKind::kModule && !*in_module) {
      place = child(thread, place, path.frames().named(FrameKind::kPhase, kForward));
      *in_module = true;
    }
    place = child(thread, place, id);
  }
  return place;
}

bool Booker::is_interpreter(const Image* image) const noexcept {
  return image != nullptr && interpreter_ >= image->begin && interpreter_ < image->end;
}

// Calls that are followed pass through Leadline's own module.
bool Booker::is_own(const Image* image) noexcept {
  static const char here = 0;
  const auto address = reinterpret_cast<uintptr_t>(&here);
  return image != nullptr && address >= image->begin && address < image->end;
}

// Whether a framework runs this because it is observed.
bool Booker::is_observing(const Image* image, uintptr_t at) {
  const ObservingFunctions& known = Monitor::instance().observing();
  if (image == nullptr || !known.any_in(image->begin, image->end)) return false;
  const uintptr_t function = functions_.at(*image, at).begin;
  return function != 0 && known.holds(function);
}

leadline_context Booker::add_own(SampledThread& thread, leadline_context below) {
  return child(thread, below, path_of(thread).frames().named(FrameKind::kNative, kOwn));
}

// What stands at the root of every stack: the C library, the program, the interpreter.
bool Booker::is_beginning(const Image* image) {
  if (image == nullptr) return false;
  const auto library = reinterpret_cast<uintptr_t>(&pthread_create);
  return is_interpreter(image) || images_.is_program(*image) || (library >= image->begin && library < image->end);
}

leadline_context Booker::add_native(leadline_context below, const unwind::NativeFrame& frame, const Image* image,
                                    bool is_leaf) {
  // A caller is where its call is, which ends just before the address that it goes on at.
  const uintptr_t at = is_leaf ? frame.pc : frame.pc - 1;
  leadline_context& known = native_places_[{below, image == nullptr ? 0 : at}];
  if (known != 0) return known;
  leadline_path_frame named{};
  named.kind = static_cast<uint8_t>(FrameKind::kNative);
  std::string name = "[code made at run time]";
  if (image != nullptr) {
    named.address = at - image->base;
    named.file = image->path.c_str();
    named.module = image->build_id.c_str();
    name = name_in(*image, at);
  }
  named.name = name.c_str();
  known = place_at(below, named);
  return known;
}

// What lies between is not known: a frame says so.
leadline_context Booker::add_gap(leadline_context below) {
  leadline_path_frame named{};
  named.kind = static_cast<uint8_t>(FrameKind::kNative);
  named.name = "[no unwind information]";
  leadline_context& known = native_places_[{below, 1}];
  if (known == 0) known = place_at(below, named);
  return known;
}

// `below` itself where it cannot be booked now.
leadline_context Booker::place_at(leadline_context below, const leadline_path_frame& frame) {
  leadline_booking booking = leadline_booking_of(below);
  booking.frames = &frame;
  booking.frame_count = 1;
  leadline_context place = 0;
  const bool booked = Monitor::instance().book(booking, &place) == LEADLINE_OK;
  return booked && place != 0 ? place : below;
}

leadline_context Booker::child(SampledThread& thread, leadline_context below, PathFrameId frame) {
  leadline_context& known = thread.places[{below, frame}];
  if (known != 0) return known;
  const PathFrame& named = path_of(thread).frames()[frame];
  leadline_path_frame given{};
  given.kind = static_cast<uint8_t>(named.kind);
  given.name = named.name;
  given.module = named.module;
  given.file = named.file;
  given.detail = named.detail;
  given.line = named.line;
  given.first_line = named.first_line;
  given.address = named.address;
  known = place_at(below, given);
  return known;
}

// With what could not be booked before.
bool Booker::add(SampledThread& thread, leadline_context place, int64_t weight_ns) noexcept {
  thread.unbooked_ns += weight_ns;
  std::array<leadline_total, 1 + kMostCounters> totals;
  uint32_t count = 0;
  const auto put = [&](MetricKind metric, int64_t value) {
    if (value > 0) totals[count++] = {static_cast<uint32_t>(metric), 1, value, value, value, 0};
  };
  put(MetricKind::kCpuSample, thread.unbooked_ns);
  const bool sampled = count != 0;
  if (const CounterPlan* const counted = plan(); counted != nullptr) {
    for (size_t i = 0; i < counted->counters().size(); ++i)
      put(counted->counters()[i].metric, thread.unbooked_counts[i]);
  }
  if (count == 0 || place == 0) return false;
  leadline_booking booking = leadline_booking_of(place);
  booking.totals = totals.data();
  booking.total_count = count;
  if (Monitor::instance().book(booking, nullptr) != LEADLINE_OK) return false;
  sum_ns_ += thread.unbooked_ns;
  thread.unbooked_ns = 0;
  thread.unbooked_counts = {};
  thread.last = place;
  if (!sampled) return true;
  booked_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void Booker::count(SampledThread& thread, const uint64_t* words) noexcept {
  if (const CounterPlan* const counted = plan(); counted != nullptr)
    thread.books.take(*counted, words, thread.unbooked_counts.data());
}

void Booker::book_rest(SampledThread& thread, int64_t weight_ns) noexcept {
  add(thread, thread.last != 0 ? thread.last : thread.root, std::max<int64_t>(weight_ns, 0));
}

void Booker::book_unseen(SampledThread& thread, int64_t weight_ns) noexcept {
  if (weight_ns > 0) add(thread, thread.root, weight_ns);
}

}  // namespace leadline::cpu
