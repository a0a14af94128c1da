#include "offline/events.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace leadline::offline {

namespace {

constexpr std::string_view kModule = "nn.Module: ";
// What Kineto writes beside what counts here; arrows' categories are theirs, whatever their phase.
constexpr std::array<std::string_view, 12> kNotNeeded = {
    "",           "trace",
    "overhead",   "gpu_user_annotation",
    "cuda_event", "cpu_instant_event",
    "ac2g",       "async_cpu_to_gpu",
    "async_gpu",  "async",
    "fwdbwd",     "external_correlation",
};
constexpr std::array<std::string_view, 2> kMarks = {"ProfilerStep", "Optimizer.step#"};
// Ranges that torch marks itself, whatever their category is called.
constexpr std::array<std::string_view, 3> kRanges = {"ProfilerStep", "Optimizer.", "enumerate(DataLoader)"};
constexpr double kLargest = 4611686018427387904.0;  // 2^62: sequence numbers above are an unsigned -1

bool starts(std::string_view text, std::string_view with) noexcept { return text.substr(0, with.size()) == with; }

// A number, or the first one in a text such as "stream 7"; 0 without any; nothing where it does not fit.
std::optional<int64_t> loose_number(const JsonValue& value) {
  if (value.type == JsonType::number) {
    const auto found = number_of(value);
    return found ? found->whole : std::nullopt;
  }
  if (value.type != JsonType::text) return 0;
  // the digits of an escape such as \u00e9 are no number
  const bool escaped = value.raw.find('\\') != std::string_view::npos;
  const std::string plain = escaped ? unescaped(value.raw) : std::string();
  const std::string_view raw = escaped ? std::string_view(plain) : std::string_view(value.raw);
  const size_t at = raw.find_first_of("0123456789");
  if (at == std::string_view::npos) return 0;
  int64_t whole = 0;
  const char* const begin = raw.data() + (at > 0 && raw[at - 1] == '-' ? at - 1 : at);
  const auto [last, error] = std::from_chars(begin, raw.data() + raw.size(), whole);
  return error == std::errc() ? std::optional(whole) : std::nullopt;
}

constexpr int64_t kNamed = int64_t{1} << 61;  // numbers of launches from here on stand for what is no such number

// What vendors write for "none": -1, whatever their number of bits.
bool all_ones(const Number& number) noexcept {
  return number.bits && (*number.bits == 0xFFFFFFFF || *number.bits == ~uint64_t{0});
}

// Number of a device or a stream: that of a pointer is as good as any; -1 for "none" and for what tells nothing.
int64_t place_of(const JsonValue& value) {
  const auto number = value.type == JsonType::number ? number_of(value) : std::nullopt;
  if (number && all_ones(*number)) return -1;
  if (const auto whole = loose_number(value)) return *whole;
  if (number && number->bits) return static_cast<int64_t>(*number->bits >> 1);
  return -1;
}

int64_t place_or_none(const JsonValue& value) { return value.type == JsonType::none ? -1 : place_of(value); }

// What a member says, `absent` where there is none or it tells nothing.
int64_t whole_or(const JsonValue& value, int64_t absent) {
  const auto found = number_of(value);
  return found && found->whole ? *found->whole : absent;
}

}  // namespace

Category EventReader::category_of(const JsonValue& value) {
  if (value.type != JsonType::text) return Category::other;
  for (const auto& [raw, category] : categories_) {
    if (raw == value.raw) return category;
  }
  const Category found = category_named(value.raw);
  if (categories_.size() < kRemembered) categories_.emplace_back(value.raw, found);
  return found;
}

// What torch's EventList writes has no category: the name tells a call and device work, everything else is a range of
// the CPU's.
Category EventReader::category_of_event_list(const Event& event) const {
  if (event.category.type != JsonType::none || event.pid.type != JsonType::text) return Category::other;
  if (event.pid.raw == "CUDA functions") return Category::kernel;
  if (event.pid.raw != "CPU functions" || event.name.type != JsonType::text) return Category::other;
  const std::string_view name = event.name.raw;
  const auto begins = [&](std::string_view with) { return starts(name, with); };
  if (begins("Memcpy ")) return Category::copy;
  if (begins("Memset ")) return Category::set;
  if (begins("void ")) return Category::kernel;
  if (begins(kModule) || name.find("): ") != std::string_view::npos) return Category::module;
  constexpr std::array<std::string_view, 4> kCalls = {"cuda", "hip", "cuLaunch", "cuMem"};
  return std::any_of(kCalls.begin(), kCalls.end(), begins) ? Category::call : Category::operation;
}

Category EventReader::category_named(std::string_view raw) {
  scratch_.assign(raw);
  std::transform(scratch_.begin(), scratch_.end(), scratch_.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter | 0x20) : letter;
  });
  const std::string_view text = scratch_;
  const auto ends = [&](std::string_view with) {
    return text.size() >= with.size() && text.substr(text.size() - with.size()) == with;
  };
  if (text == "cpu_op" || text == "operator") return Category::operation;
  if (text == "kernel") return Category::kernel;
  if (text == "python_function") return Category::module;
  if (text == "user_annotation") return Category::region;
  if (text == "runtime" || ends("_runtime") || ends("_driver")) return Category::call;
  if (text == "gpu_memcpy" || text == "memcpy") return Category::copy;
  if (text == "gpu_memset" || text == "memset") return Category::set;
  if (text == "cuda_sync") return Category::sync;
  const bool known = std::find(kNotNeeded.begin(), kNotNeeded.end(), text) != kNotNeeded.end();
  return known ? Category::other : Category::unknown;
}

// Device work has a stream and the number of its launch, a call only the number; operators have a namespace.
Category EventReader::category_of_unknown(const Event& event) {
  const bool numbered = event.args[Argument::correlation].type != JsonType::none;
  const bool on_stream = event.args[Argument::stream].type != JsonType::none;
  const std::string_view name = event.name.type == JsonType::text ? event.name.raw : std::string_view();
  Category found = Category::other;
  if (numbered && on_stream) {
    found = Category::kernel;
  } else if (starts(name, "aten::")) {
    found = Category::operation;
  } else if (std::any_of(kRanges.begin(), kRanges.end(), [&](std::string_view mark) { return starts(name, mark); })) {
    found = Category::region;
  } else if (numbered && (starts(name, "cuda") || starts(name, "hip"))) {
    found = Category::call;
  }
  const auto same = [&](const Unfamiliar& entry) { return entry.category == event.category.raw; };
  auto at = std::find_if(unfamiliar.begin(), unfamiliar.end(), same);
  if (at == unfamiliar.end()) {
    if (unfamiliar.size() == kRemembered) return found;
    at = unfamiliar.insert(at, {std::string(event.category.raw), 0, 0});
  }
  ++(found == Category::other ? at->left_out : at->taken);
  return found;
}

bool EventReader::feed(std::string_view data, bool last) {
  buffer_.erase(0, begin_);
  begin_ = 0;
  buffer_.append(data);
  const char* const text = buffer_.data();
  const size_t size = buffer_.size();
  Event event;
  for (;;) {
    if (seeking_ && !step_over(last)) return false;
    while (begin_ < size &&
           (text[begin_] == ',' || text[begin_] == ' ' || (text[begin_] >= '\t' && text[begin_] <= '\r'))) {
      ++begin_;
    }
    if (begin_ == size) return false;
    if (text[begin_] == ']') {
      ++begin_;
      return true;
    }
    JsonScanner scanner(text + begin_, text + size);
    const Scan found = scan_event(scanner, event);
    scanner.space();
    const bool is_key = found == Scan::ok && !event.object && scanner.at() != text + size && *scanner.at() == ':';
    if (found == Scan::ok && !is_key) {
      // behind damage an object without a phase is a part of what is damaged
      if (behind_damage_ && event.phase.type == JsonType::none) {
        seeking_ = true;
        continue;
      }
      behind_damage_ = false;
      begin_ = static_cast<size_t>(scanner.at() - text);
      if (!take(event)) lose(malformed, event);
      continue;
    }
    if (found == Scan::incomplete && !last && size - begin_ < kEventLimit) return false;
    damaged = seeking_ = true;
  }
}

int32_t EventReader::name_row(std::string_view raw) {
  if (raw.find('\\') == std::string_view::npos) return names.row(raw);
  return names.row(unescaped(raw));
}

bool EventReader::thread_row(const Event& event, int32_t& row) {
  const auto usable = [](const JsonValue& value) {
    return value.type == JsonType::number || value.type == JsonType::text;
  };
  if (!usable(event.pid) || !usable(event.tid)) return false;
  if (last_row_ >= 0 && event.pid.raw == last_process_ && event.tid.raw == last_tid_) {
    row = last_row_;
    return true;
  }
  ThreadKey key{0, -1, 0};
  const bool digits = event.pid.type == JsonType::text && !event.pid.raw.empty() &&
                      event.pid.raw.find_first_not_of("0123456789") == std::string_view::npos;
  if (event.pid.type == JsonType::number || digits) {
    const auto process = number_of(event.pid);
    if (!process || !(process->whole || process->bits)) return false;
    key.process = process->whole ? *process->whole : static_cast<int64_t>(*process->bits >> 1);
  } else {
    key.text_process = name_row(event.pid.raw);
  }
  key.tid = place_of(event.tid);
  const auto [at, added] = thread_rows_.try_emplace(key, static_cast<int32_t>(threads.tid.size()));
  if (added) {
    threads.process.push_back(key.process);
    threads.text_process.push_back(key.text_process);
    threads.tid.push_back(key.tid);
    threads.name.push_back(-1);
  }
  last_process_.assign(event.pid.raw);
  last_tid_.assign(event.tid.raw);
  last_row_ = row = at->second;
  return true;
}

// A number that fits, or one that stands for whatever else tells launches apart; 0 for none.
int64_t EventReader::correlation_of(const JsonValue& value) {
  if (value.type != JsonType::number && value.type != JsonType::text) return 0;
  const auto number = number_of(value);
  if (number && (all_ones(*number) || std::isnan(number->real))) return 0;
  if (number && number->whole && *number->whole < kNamed) return std::max<int64_t>(*number->whole, 0);
  return value.raw.empty() ? 0 : kNamed + correlation_ids_.row(value.raw);
}

int32_t EventReader::detail_row(const Event& event) {
  if (event.args.details.empty()) return -1;
  scratch_.clear();
  for (const auto& [key, value] : event.args.details) {
    scratch_ += scratch_.empty() ? "\"" : ",\"";
    scratch_ += key == "Input dims" ? "Input Dims" : key;  // torch 1.8 to 1.11
    scratch_ += "\":";
    scratch_ += value;
  }
  return details.row(scratch_);
}

bool EventReader::take(const Event& event) {
  if (!event.object || event.phase.type == JsonType::none) return false;
  const std::string_view phase = event.phase.type == JsonType::text ? event.phase.raw : std::string_view();
  if (phase == "X") return take_span(event);
  if (phase == "s" || phase == "f") return event.category.raw != "fwdbwd" || options_.marks_only || take_flow(event);
  if (phase == "M") return event.name.raw != "thread_name" || take_thread_name(event);
  if (phase == "i") return event.name.raw != "[memory]" || options_.marks_only || take_memory(event);
  if (phase == "B" || phase == "E") return take_border(event, phase == "E");
  if ((phase == "b" || phase == "S") && counts(event)) ++asynchronous.events;
  return true;
}

bool EventReader::counts(const Event& event) {
  const Category category = category_of(event.category);
  return category != Category::other && category != Category::unknown;
}

// A span of which the end is not known yet, or an end. A begin that lacks something still has an end.
bool EventReader::take_border(const Event& event, bool end) {
  const auto ts = number_of(event.ts);
  if (!ts) return false;
  const size_t before = events.ts.size();
  const bool taken = end || take_span(event, true);
  const int64_t begun = events.ts.size() > before ? static_cast<int64_t>(before) : BorderColumns::kUncounted;
  const std::string track = std::string(event.pid.raw) + '\0' + std::string(event.tid.raw);
  borders.row.push_back(end ? BorderColumns::kEnd : begun);
  borders.track.push_back(tracks_.row(track));
  borders.ts.push_back(ts->real);
  return taken;
}

bool EventReader::take_span(const Event& event, bool open) {
  Category category = category_of(event.category);
  if (event.category.type == JsonType::none) category = category_of_event_list(event);
  if (category == Category::unknown && !options_.marks_only) category = category_of_unknown(event);
  if (category == Category::other || category == Category::unknown) return true;
  if (options_.marks_only && category != Category::region && category != Category::operation) return true;
  const bool uncategorised = event.category.type == JsonType::none;
  legacy |= uncategorised || event.category.raw == "Operator";
  if (category == Category::sync) return take_sync(event);
  if (event.name.type != JsonType::text) return false;
  std::string_view name = event.name.raw;
  if (options_.marks_only && !starts(name, kMarks[0]) && !starts(name, kMarks[1])) return true;
  if (category == Category::module) {
    if (starts(name, kModule)) {
      name.remove_prefix(kModule.size());
    } else if (options_.python) {
      category = Category::python;
    } else {
      return true;
    }
  }
  const auto ts = number_of(event.ts);
  const Number kOpen{std::numeric_limits<double>::infinity(), std::nullopt, std::nullopt};
  const auto dur = open                               ? std::optional(kOpen)
                   : event.dur.type == JsonType::none ? std::optional(Number{0.0, 0, 0})
                                                      : number_of(event.dur);
  if (!ts || !dur) return false;
  if (!(ts->real <= options_.high_us && ts->real + dur->real >= options_.low_us) &&
      (std::isfinite(options_.low_us) || std::isfinite(options_.high_us))) {
    return true;
  }
  const Arguments& args = event.args;
  int32_t thread = -1, track = -1;
  int64_t device = -1, stream = -1, correlation = 0, sequence = -1, forward = -1, bytes = 0;
  if (category == Category::kernel || category == Category::copy || category == Category::set) {
    const auto either = [](const JsonValue& one, const JsonValue& other) {
      return place_of(one.type == JsonType::none ? other : one);
    };
    device = uncategorised ? 0 : std::max<int64_t>(either(args[Argument::device], event.pid), 0);
    stream = either(args[Argument::stream], event.tid);
    bytes = std::max<int64_t>(whole_or(args[Argument::bytes], 0), 0);
    correlation = correlation_of(args[Argument::correlation]);
    const auto process = number_of(event.pid);
    if ((!process || process->whole != device) && !thread_row(event, track)) track = -1;
  } else {
    if (!thread_row(event, thread)) return false;
    if (category == Category::call) correlation = correlation_of(args[Argument::correlation]);
    if (category == Category::operation) {
      const auto number = number_of(args[Argument::sequence]);
      if (number && number->real < kLargest && number->whole) sequence = *number->whole;
      if (sequence >= 0) forward = whole_or(args[Argument::forward_thread], -1);
    }
  }
  const bool path = (category == Category::module || category == Category::python) && has_bare_backslash(name);
  events.ts.push_back(ts->real);
  events.dur.push_back(dur->real);
  events.category.push_back(static_cast<uint8_t>(category));
  events.name.push_back(path ? names.row(unescaped_path(name)) : name_row(name));
  events.thread.push_back(thread);
  events.track.push_back(track);
  events.device.push_back(device);
  events.stream.push_back(stream);
  events.correlation.push_back(correlation);
  events.sequence.push_back(sequence);
  events.forward_thread.push_back(forward);
  events.bytes.push_back(bytes);
  events.detail.push_back(detail_row(event));
  return true;
}

bool EventReader::take_flow(const Event& event) {
  int32_t thread = -1;
  const auto ts = number_of(event.ts);
  if (!thread_row(event, thread) || !ts || !(std::abs(ts->real) < kLargest)) return false;
  int64_t id = 0;
  if (event.id.type == JsonType::number) {
    const auto number = number_of(event.id);
    if (!number || !number->whole) return false;
    id = *number->whole;
  } else if (event.id.type == JsonType::text) {
    id = std::numeric_limits<int64_t>::min() + flow_ids_.row(event.id.raw);
  } else {
    return false;
  }
  flows.id.push_back(id);
  flows.finish.push_back(event.phase.raw == "f");
  flows.thread.push_back(thread);
  flows.ts.push_back(ts->real);
  return true;
}

bool EventReader::take_sync(const Event& event) {
  const Arguments& args = event.args;
  const int64_t correlation = correlation_of(args[Argument::correlation]);
  if (!args.object || args[Argument::correlation].type == JsonType::none) return false;
  const int64_t waiting = place_or_none(args[Argument::stream]);
  const bool named = args[Argument::wait_on_stream].type != JsonType::none;
  syncs.correlation.push_back(correlation);
  syncs.waiting.push_back(waiting);
  syncs.awaited.push_back(named ? place_or_none(args[Argument::wait_on_stream]) : waiting);
  syncs.record.push_back(correlation_of(args[Argument::wait_on_record]));
  return true;
}

bool EventReader::take_memory(const Event& event) {
  const auto ts = number_of(event.ts);
  const auto size = number_of(event.args[Argument::memory_bytes]);
  if (!ts || !(std::abs(ts->real) < kLargest) || !size || !size->whole) return false;
  memory.ts.push_back(ts->real);
  memory.size.push_back(*size->whole);
  memory.device_type.push_back(whole_or(event.args[Argument::device_type], 0));
  return true;
}

bool EventReader::take_thread_name(const Event& event) {
  int32_t thread = -1;
  if (!thread_row(event, thread)) return false;
  const JsonValue& name = event.args[Argument::name];
  const bool named = name.type == JsonType::text;
  if (name.type != JsonType::none) threads.name[static_cast<size_t>(thread)] = name_row(named ? name.raw : "?");
  return true;
}

}  // namespace leadline::offline
