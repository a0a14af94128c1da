#include "gpu/instruction_samples.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <tuple>

#include "base/ids.h"
#include "gpu/measure.h"

namespace leadline::gpu {
namespace {

// A place that runs of one kernel share: runs of it are not told apart in the tree.
using PlaceKey = std::tuple<leadline_context, leadline_context, std::uint8_t, std::uint64_t, std::int64_t, std::string>;

std::string quoted(std::string_view text) {
  std::string made = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') made += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) made += c;
  }
  return made + '"';
}

// Frames of instructions; texts live until they are told.
class Instructions {
 public:
  void add(const InstructionSample& sample, const std::string& function, std::uint64_t count, std::uint64_t latency) {
    if (count == 0) return;
    char place[32];
    std::snprintf(place, sizeof place, "+0x%04" PRIx64, sample.offset);
    char code[24];
    std::snprintf(code, sizeof code, "%016" PRIx64, sample.code);
    std::string detail = "{";
    if (sample.stall != nullptr) detail += "\"stall\": " + quoted(sample.stall) + ", ";
    detail += "\"code\": \"" + std::string(code) + "\", \"function\": " + quoted(function) + "}";
    texts_.push_back({place,
                      std::move(detail),
                      {{{number(MetricKind::kInstructionSamples), static_cast<std::int64_t>(count)},
                        {number(MetricKind::kLatencySamples), static_cast<std::int64_t>(latency)}}}});
    leadline_activity_child child{};
    child.frame_kind = static_cast<std::uint8_t>(FrameKind::kInstruction);
    child.address = sample.offset;
    child.name = texts_.back().name.c_str();
    child.detail = texts_.back().detail.c_str();
    child.measures = texts_.back().measures.data();
    child.measure_count = latency > 0 ? 2 : 1;
    children_.push_back(child);
  }
  const std::vector<leadline_activity_child>& children() const { return children_; }

 private:
  struct Text {
    std::string name;
    std::string detail;
    std::array<leadline_measure, 2> measures;
  };
  std::deque<Text> texts_;  // its elements stay where they are
  std::vector<leadline_activity_child> children_;
};

struct Share {
  const KernelRun* run = nullptr;
  const std::string* name = nullptr;
  double weight = 0;
  double owed = 0;  // what rounding has kept from it so far
  Instructions instructions;
};

// Whole samples, so that those of each place add up to its part of all as closely as whole numbers can.
void divide(const InstructionSample& sample, const std::string& function, std::vector<Share*>& among) {
  double whole = 0;
  for (const Share* share : among) whole += share->weight;
  std::vector<std::uint64_t> given(among.size());
  std::uint64_t left = sample.count;
  for (std::size_t i = 0; i < among.size(); ++i) {
    Share& share = *among[i];
    share.owed += whole > 0 ? static_cast<double>(sample.count) * share.weight / whole
                            : static_cast<double>(sample.count) / static_cast<double>(among.size());
    const double due = std::clamp(share.owed, 0.0, static_cast<double>(left));
    given[i] = static_cast<std::uint64_t>(due);
    left -= given[i];
    share.owed -= static_cast<double>(given[i]);
  }
  while (left > 0) {
    const auto most =
        std::max_element(among.begin(), among.end(), [](const Share* a, const Share* b) { return a->owed < b->owed; });
    ++given[static_cast<std::size_t>(most - among.begin())];
    (*most)->owed -= 1;
    --left;
  }
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < among.size(); ++i) {
    const auto part = [&](std::uint64_t count) {
      return sample.count == 0
                 ? 0
                 : static_cast<std::uint64_t>(static_cast<double>(sample.latency) * static_cast<double>(count) /
                                              static_cast<double>(sample.count));
    };
    among[i]->instructions.add(sample, function, given[i], part(before + given[i]) - part(before));
    before += given[i];
  }
}

}  // namespace

void InstructionSamples::window_opens(std::int32_t device, std::int64_t start_ns) {
  const std::lock_guard lock(mutex_);
  windows_.push_back({device, start_ns});
}

void InstructionSamples::window_closes(std::int32_t device, std::int64_t end_ns) {
  const std::lock_guard lock(mutex_);
  for (Window& window : windows_) {
    if (window.device == device && window.end_ns == INT64_MAX) window.end_ns = end_ns;
  }
}

void InstructionSamples::give(SampleBatch&& batch) {
  const std::lock_guard lock(mutex_);
  for (const InstructionSample& sample : batch.samples) counters_.samples += sample.count;
  if (!batch.samples.empty()) batches_.push_back(std::move(batch));
}

std::int64_t InstructionSamples::inside_windows_ns(const KernelRun& run) const {
  std::int64_t inside = 0;
  for (const Window& window : windows_) {
    if (window.device != run.device) continue;
    inside += std::max<std::int64_t>(0, std::min(run.end_ns, window.end_ns) - std::max(run.start_ns, window.start_ns));
  }
  return inside;
}

const std::string* InstructionSamples::name_of(const char* mangled) {
  const std::string_view wanted = mangled == nullptr ? std::string_view() : mangled;
  if (const auto known = names_.find(wanted); known != names_.end()) return &*known;
  if (names_.size() >= kMostNames) return nullptr;
  return &*names_.emplace(wanted).first;
}

void InstructionSamples::ran(const KernelRun& run, const char* mangled) {
  const std::lock_guard lock(mutex_);
  const std::string* name = name_of(mangled);
  if (name == nullptr) return;
  const std::int64_t inside = inside_windows_ns(run);
  measure(*name, run.end_ns - run.start_ns, inside);
  if (inside <= 0) return;
  if (runs_.size() >= kMostRuns) runs_.pop_front();
  runs_.push_back({run, name});
}

void InstructionSamples::measure(const std::string& name, std::int64_t duration_ns, std::int64_t inside_ns) {
  constexpr double kKept = 0.98;
  constexpr double kEnough = 4;
  if (duration_ns <= 0) return;
  Rate& rate = rates_[&name];
  const auto ns = static_cast<double>(duration_ns);
  if (inside_ns == 0) {
    rate.outside_ns = rate.outside_ns * kKept + ns;
    rate.outside = rate.outside * kKept + 1;
  } else if (inside_ns == duration_ns) {  // at the border of a window it is neither
    rate.inside_ns = rate.inside_ns * kKept + ns;
    rate.inside = rate.inside * kKept + 1;
    if (rate.inside >= kEnough && rate.outside >= kEnough) {
      slowdown_ns_ += ns * (1 - rate.outside_ns / rate.outside / (rate.inside_ns / rate.inside));
    }
  }
}

std::int64_t InstructionSamples::take_slowdown_ns() {
  const std::lock_guard lock(mutex_);
  // Chance makes some kernels faster inside: only what is left over all of them is cost.
  if (slowdown_ns_ <= 0) return 0;
  const auto taken = static_cast<std::int64_t>(slowdown_ns_);
  slowdown_ns_ = 0;
  return taken;
}

SampleCounters InstructionSamples::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

void InstructionSamples::settle(std::int64_t until_ns, const Tell& tell) {
  const std::lock_guard lock(mutex_);
  while (!batches_.empty() && batches_.front().end_ns <= until_ns) {
    tell_batch(batches_.front(), tell);
    batches_.pop_front();
  }
  // A batch that is still to come may reach back to the oldest window that is open or not settled.
  std::int64_t oldest = until_ns;
  for (const SampleBatch& batch : batches_) oldest = std::min(oldest, batch.start_ns);
  while (!windows_.empty() && windows_.front().end_ns <= oldest) windows_.pop_front();
  if (!windows_.empty()) oldest = std::min(oldest, windows_.front().start_ns);
  std::erase_if(runs_, [&](const Kept& kept) { return kept.run.end_ns <= oldest; });
}

void InstructionSamples::tell_batch(const SampleBatch& batch, const Tell& tell) {
  std::map<PlaceKey, Share> shares;
  // What may have run, by name and launch; each stretch of one place adds to its weight.
  std::unordered_map<std::string_view, std::vector<Share*>> by_name;
  std::map<std::pair<std::uint32_t, std::string_view>, std::vector<Share*>> by_launch;
  std::map<std::uint32_t, std::vector<Share*>> of_launch;
  const auto put = [](std::vector<Share*>& into, Share* share) {
    if (std::find(into.begin(), into.end(), share) == into.end()) into.push_back(share);
  };
  for (const Kept& kept : runs_) {
    const KernelRun& run = kept.run;
    const std::int64_t inside = std::min(run.end_ns, batch.end_ns) - std::max(run.start_ns, batch.start_ns);
    if (run.device != batch.device || inside <= 0) continue;
    Share& share = shares[{run.context, run.via, run.via_kind, run.graph_node, run.stream, *kept.name}];
    share.run = &run;
    share.name = kept.name;
    share.weight += static_cast<double>(inside);
    put(by_name[*kept.name], &share);
    put(by_launch[{run.correlation, *kept.name}], &share);
    put(of_launch[run.correlation], &share);
  }
  std::uint64_t lost = 0;
  for (const InstructionSample& sample : batch.samples) {
    if (sample.function >= batch.functions.size()) continue;
    const std::string& function = batch.functions[sample.function];
    const bool part = sample.function < batch.kernels.size() && !batch.kernels[sample.function].empty();
    const std::string& kernel = part ? batch.kernels[sample.function] : function;
    std::vector<Share*>* among = nullptr;
    if (sample.correlation != 0) {
      // A function that a kernel calls has a name of its own, but the launch is the kernel's.
      if (const auto found = by_launch.find({sample.correlation, kernel}); found != by_launch.end()) {
        among = &found->second;
      } else if (const auto any = of_launch.find(sample.correlation); any != of_launch.end()) {
        among = &any->second;
      }
      if (among != nullptr) counters_.by_launch += sample.count;
    } else if (const auto found = by_name.find(kernel); found != by_name.end()) {
      among = &found->second;
      counters_.by_window += sample.count;
    }
    if (among == nullptr) {
      lost += sample.count;
    } else {
      divide(sample, function, *among);
    }
  }
  counters_.unattributed += lost;
  count_loss(LossKind::kInstructionSamplesUnattributed, lost,
             "Samples were taken of functions of which no kernel was seen to run then: kernels whose records were "
             "dropped, or functions that several kernels call.");
  for (auto& [key, share] : shares) {
    if (!share.instructions.children().empty()) tell(*share.run, *share.name, share.instructions.children());
  }
}

}  // namespace leadline::gpu
