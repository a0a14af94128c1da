#include "gpu/recording.h"

#include <array>
#include <cinttypes>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "base/ids.h"
#include "gpu/activity_fold.h"
#include "gpu/kernel_names.h"
#include "gpu/measure.h"

namespace leadline::gpu {
namespace {

constexpr const char* kHeader = "leadline-gpu-recording 3";

// The rest of a line is free text, so it only must not hold a line break.
std::string one_line(std::string_view text) {
  std::string clean(text);
  for (char& c : clean) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return clean;
}

// "thread;train.py:12 step;aten::mm;someLaunch"; must be called on the thread whose path is meant.
std::string call_path_text() {
  constexpr std::size_t kFrames = 512;
  std::vector<leadline_frame> frames(kFrames);
  std::size_t count = frames.size();
  if (leadline_callpath_get(LEADLINE_SOURCE_ALL, frames.data(), &count) != LEADLINE_OK) return "?";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) text += ';';
    if (frames[i].file && *frames[i].file)
      text += std::string(frames[i].file).append(":").append(std::to_string(frames[i].line)).append(" ");
    text += frames[i].name ? frames[i].name : "?";
  }
  return one_line(text);
}

}  // namespace

void FoldedText::add(const std::string& path, const std::string& via, const leadline_gpu_activity_event& activity) {
  std::string key = path.empty() ? "(launch not seen)" : path;
  if (activity.via_kind == LEADLINE_VIA_CAPTURE && !via.empty()) key += ";captured at;" + via;
  if (activity.via_kind == LEADLINE_VIA_INSTANTIATE) key += ";instantiated at;" + via;
  if (activity.via_kind == LEADLINE_VIA_BEFORE)
    key += ";captured before profiling (graph " + std::to_string(activity.graph_node >> 32) + ")";
  if (activity.name) key += std::string(";") + activity.name;
  if (activity.via_kind != LEADLINE_VIA_CAPTURE)
    key += " (node " + std::to_string(static_cast<std::uint32_t>(activity.graph_node)) + ")";
  key += " | device " + std::to_string(activity.device) + " stream " + std::to_string(activity.stream) + " | ";
  const auto book = [&](std::string_view metric, std::int64_t value) {
    Sum& sum = sums_[key + std::string(metric)];
    ++sum.count;
    sum.sum += value;
  };
  const bool is_work = activity.event_kind != static_cast<std::uint8_t>(EventKind::kOverhead);
  if (activity.name && activity.duration_ns >= 0 && is_work) book("gpu_time", activity.duration_ns);
  for (std::uint32_t i = 0; i < activity.measure_count; ++i) {
    book(to_string(static_cast<MetricKind>(activity.measures[i].metric)), activity.measures[i].value);
  }
}

std::string FoldedText::text() const {
  std::string text;
  for (const auto& [key, sum] : sums_) {
    text += key + " count " + std::to_string(sum.count) + " sum " + std::to_string(sum.sum) + "\n";
  }
  return text;
}

std::unique_ptr<Recorder> Recorder::create(const std::string& path, const std::string& library, std::string* error) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (!file) {
    *error = "The recording " + path + " cannot be written (" + std::strerror(errno) +
             "); name a file in a writable folder.";
    return nullptr;
  }
  std::fprintf(file, "%s\nlibrary %s\n", kHeader, library.c_str());
  return std::unique_ptr<Recorder>(new Recorder(file, path));
}

void Recorder::devices(const std::vector<DeviceInfo>& devices) {
  const std::lock_guard lock(mutex_);
  for (const DeviceInfo& d : devices) {
    if (d.stepping != 0) std::fprintf(file_, "stepping %d\n", d.stepping);
    std::fprintf(file_, "device %d %d %d %d %d %d %d %d %d %d %s\n", d.index, d.major, d.minor, d.multiprocessors,
                 d.warp_size, d.max_threads_per_multiprocessor, d.max_blocks_per_multiprocessor,
                 d.registers_per_multiprocessor, d.shared_per_multiprocessor, d.reserved_shared_per_block,
                 d.name.c_str());
  }
}

Recorder::~Recorder() {
  std::fclose(file_);
  try {
    if (std::FILE* expected = std::fopen((path_ + ".folded").c_str(), "we")) {
      std::fputs(folded_.text().c_str(), expected);
      std::fclose(expected);
    }
  } catch (...) {
    count_loss(LossKind::kInternalError, 1, "There was no memory to record what was measured.");
  }
}

// Places are numbered from 1 in the order they are met; 0 is nowhere.
std::uint64_t Recorder::place(leadline_context context) noexcept {
  if (context == 0) return 0;
  if (const auto found = places_.find(context); found != places_.end()) return found->second;
  const std::size_t known = place_text_.size();
  try {
    place_text_.push_back(call_path_text());
    places_.emplace(context, known + 1);
  } catch (...) {
    place_text_.resize(known);
    count_loss(LossKind::kInternalError, 1, "There was no memory to record a place.");
    return 0;
  }
  std::fprintf(file_, "p %zu %s\n", known + 1, place_text_.back().c_str());
  return known + 1;
}

void Recorder::api_begin(const leadline_gpu_api_event& api, leadline_context context, std::int64_t time_ns,
                         std::uint32_t thread) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t at = place(context);
  std::fprintf(file_, "b %u %" PRId64 " %d %" PRIu64 " %" PRIu64 " %s\n", thread, time_ns, static_cast<int>(api.kind),
               api.correlation, at, api.name);
}

void Recorder::api_end(const leadline_gpu_api_event& api, std::int64_t time_ns, std::uint32_t thread, bool cancelled) {
  const std::lock_guard lock(mutex_);
  std::fprintf(file_, "e %u %" PRId64 " %" PRIu64 " %d\n", thread, time_ns, api.correlation, cancelled ? 1 : 0);
}

void Recorder::inner_call(std::uint32_t correlation, const Launch& launch) {
  const std::lock_guard lock(mutex_);
  std::fprintf(file_, "i %u %" PRId64 " %d %u %u %" PRIu64 "\n", launch.thread, launch.start_ns, launch.kind,
               correlation, launch.outer, place(launch.context));
}

void Recorder::paused_call(std::uint32_t correlation) {
  const std::lock_guard lock(mutex_);
  std::fprintf(file_, "x %u\n", correlation);
}

void Recorder::pause(bool on, std::int64_t time_ns) {
  const std::lock_guard lock(mutex_);
  std::fprintf(file_, "z %d %" PRId64 "\n", on ? 1 : 0, time_ns);
}

void Recorder::mark(std::uint32_t thread, std::int64_t time_ns, leadline_context context) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t at = place(context);
  std::fprintf(file_, "m %u %" PRId64 " %" PRIu64 "\n", thread, time_ns, at);
}

void Recorder::graph_node(std::uint64_t node, std::uint64_t original, std::uint64_t graph, leadline_context context) {
  const std::lock_guard lock(mutex_);
  // Of a clone the place is that of the instantiation, which only matters where the original is not known.
  const std::uint64_t at = place(context);
  std::fprintf(file_, "n %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", node, original, graph, at);
}

void Recorder::work(const Work& w) {
  const std::lock_guard lock(mutex_);
  if (w.accumulation_registers != 0 || w.scalar_registers != 0 || w.scratch != 0) {
    std::fprintf(file_, "s %d %d %d\n", w.accumulation_registers, w.scalar_registers, w.scratch);
  }
  if (w.peer >= 0) std::fprintf(file_, "l %d %s\n", w.peer, w.link ? w.link : "");
  std::fprintf(file_,
               "w %d %u %" PRId64 " %" PRId64 " %d %" PRId64 " %u %" PRIu64 " %" PRId64 " %d %d %d %u %" PRId64
               " %d %d %d %d %d %u %s\n",
               static_cast<int>(w.kind), w.correlation, w.start_ns, w.end_ns, w.device, w.stream, w.context,
               w.graph_node, w.bytes, static_cast<int>(w.direction), static_cast<int>(w.source),
               static_cast<int>(w.destination), w.holds_thread ? 1u : 0u, w.blocks, w.block_threads, w.registers,
               w.static_shared, w.dynamic_shared, w.shared_executed, w.graph, w.name ? w.name : "");
}

void Recorder::folded(const leadline_gpu_activity_event& activity) noexcept try {
  const std::lock_guard lock(mutex_);
  const auto text = [&](leadline_context context) {
    const auto found = places_.find(context);
    return found == places_.end() ? std::string() : place_text_[found->second - 1];
  };
  folded_.add(text(activity.context), text(activity.via), activity);
} catch (...) {
  count_loss(LossKind::kInternalError, 1, "There was no memory to record what was measured.");
}

namespace {

struct Replay {
  std::vector<std::string> places;
  std::set<std::string> links;  // its elements stay where they are
  FoldedText folded;
  std::string text(leadline_context context) const {
    return context == 0 || context > places.size() ? std::string() : places[context - 1];
  }
};

void on_activity(const leadline_event* event, void* user) {
  auto& replay = *static_cast<Replay*>(user);
  const leadline_gpu_activity_event& activity = event->of.gpu_activity;
  replay.folded.add(replay.text(activity.context), replay.text(activity.via), activity);
}

bool in_table(int number, std::size_t size) { return number >= 0 && static_cast<std::size_t>(number) < size; }

bool makes_work(int kind) {
  return kind == LEADLINE_GPU_LAUNCH || kind == LEADLINE_GPU_COPY || kind == LEADLINE_GPU_SET ||
         kind == LEADLINE_GPU_GRAPH_LAUNCH;
}

}  // namespace

ReplayResult replay(const std::string& path, const Vendor& vendor) {
  ReplayResult result;
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || line != kHeader) {
    result.error = "The file " + path +
                   " is not a recording of GPU work that this version reads; make one with LEADLINE_GPU_RECORDING.";
    return result;
  }
  Replay state;
  CorrelationMap launches;
  GraphMap graphs;
  KernelSources sources;
  std::map<std::uint32_t, std::uint32_t> threads;  // recorded thread → here
  const auto here = [&](std::uint32_t thread) {
    const auto [found, is_new] = threads.try_emplace(thread, LaunchLog::kNone);
    if (is_new) found->second = launches.log()->take();
    return found->second;
  };
  ActivityFold fold(launches, graphs, sources, vendor);
  std::string name;
  Work beside;                // what the line before says of the next piece of work
  std::int32_t stepping = 0;  // and of the next device
  leadline_subscription subscription = 0;
  if (leadline_monitor_register(LEADLINE_DOMAIN_GPU_ACTIVITY, on_activity, &state, &subscription) != LEADLINE_OK) {
    result.error = "The monitor has no room for another subscriber, so the recording was not replayed.";
    return result;
  }
  while (std::getline(file, line)) {
    std::istringstream in(line);
    std::string kind;
    in >> kind;
    if (kind == "device") {
      DeviceInfo d;
      in >> d.index >> d.major >> d.minor >> d.multiprocessors >> d.warp_size >> d.max_threads_per_multiprocessor >>
          d.max_blocks_per_multiprocessor >> d.registers_per_multiprocessor >> d.shared_per_multiprocessor >>
          d.reserved_shared_per_block;
      d.stepping = std::exchange(stepping, 0);
      fold.describe({d});
      continue;
    }
    if (kind == "library") continue;
    if (kind == "stepping") {
      in >> stepping;
      continue;
    }
    std::uint32_t thread = 0;
    std::int64_t time = 0;
    std::uint64_t place = 0;
    if (kind == "p") {
      in >> place;
      in.ignore(1);
      std::getline(in, name);
      state.places.push_back(name);
    } else if (kind == "b") {
      int call = 0;
      std::uint64_t correlation = 0;
      in >> thread >> time >> call >> correlation >> place;
      launches.put(static_cast<std::uint32_t>(correlation),
                   {place, time, here(thread), static_cast<std::uint8_t>(call), 0, false}, makes_work(call));
    } else if (kind == "i") {
      int call = 0;
      std::uint32_t correlation = 0, outer = 0;
      in >> thread >> time >> call >> correlation >> outer >> place;
      launches.put(correlation, {place, time, here(thread), static_cast<std::uint8_t>(call), outer, false}, false);
    } else if (kind == "e") {
      std::uint64_t correlation = 0;
      int cancelled = 0;
      in >> thread >> time >> correlation >> cancelled;
      if (cancelled) launches.cancel(here(thread), static_cast<std::uint32_t>(correlation));
    } else if (kind == "x") {
      std::uint32_t correlation = 0;
      in >> correlation;
      launches.put(correlation, {0, 0, LaunchLog::kNone, LEADLINE_GPU_LAUNCH, 0, true}, false);
    } else if (kind == "z") {
      int on = 0;
      in >> on >> time;
      on != 0 ? fold.pause(time) : fold.resume(time);
    } else if (kind == "m") {
      in >> thread >> time >> place;
      launches.place(here(thread), time, place);
    } else if (kind == "n") {
      std::uint64_t node = 0, original = 0, graph = 0;
      in >> node >> original >> graph >> place;
      original == 0 ? graphs.created(node, graph, place) : graphs.cloned(node, original, graph, {place, 0});
    } else if (kind == "s") {
      in >> beside.accumulation_registers >> beside.scalar_registers >> beside.scratch;
    } else if (kind == "l") {
      in >> beside.peer;
      in.ignore(1);
      std::getline(in, name);
      beside.link = name.empty() ? nullptr : state.links.insert(name).first->c_str();
    } else if (kind == "w") {
      Work w = std::exchange(beside, {});
      int work_kind = 0, direction = 0, source = 0, destination = 0;
      in >> work_kind >> w.correlation >> w.start_ns >> w.end_ns >> w.device >> w.stream >> w.context >> w.graph_node >>
          w.bytes >> direction >> source >> destination >> w.holds_thread >> w.blocks >> w.block_threads >>
          w.registers >> w.static_shared >> w.dynamic_shared >> w.shared_executed >> w.graph;
      if (work_kind < 0 || work_kind >= static_cast<int>(WorkKind::kNone) || !in_table(direction, kDirections) ||
          !in_table(source, kMemories) || !in_table(destination, kMemories)) {
        result.error = "The recording " + path + " is damaged at the line: " + line.substr(0, 80) + ".";
        break;
      }
      in.ignore(1);
      std::getline(in, name);
      w.kind = static_cast<WorkKind>(work_kind);
      w.direction = static_cast<Direction>(direction);
      w.source = static_cast<Memory>(source);
      w.destination = static_cast<Memory>(destination);
      w.name = name.c_str();
      fold.add(w);
    } else {
      result.error = "The recording " + path + " has a line that this version does not know.";
      break;
    }
    if (!in && !in.eof()) {
      result.error = "The recording " + path + " is damaged at the line: " + line.substr(0, 80) + ".";
      break;
    }
  }
  fold.finish();
  result.records = fold.counters().records;
  result.unattributed = fold.counters().unattributed;
  leadline_monitor_unregister(subscription);
  result.folded = state.folded.text();
  return result;
}

}  // namespace leadline::gpu
