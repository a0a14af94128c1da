// What lines and events of devices say, in the layouts of GPUs and of TPUs.
#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <unordered_map>
#include <unordered_set>

#include "xla/space.h"

namespace leadline::xla {
namespace {

constexpr std::string_view kDevice = "/device:";
constexpr std::string_view kStream = "Stream #";
constexpr std::array<std::string_view, 2> kOperations{"XLA Ops", "Async XLA Ops"};
constexpr std::string_view kSparseCore = " SparseCore ";
constexpr std::string_view kSparseOperations = "Sparse Core Ops";
constexpr std::array<std::string_view, 2> kModules{"XLA Modules", "Sparse Core Modules"};
constexpr int32_t kMostDevices = 10'000;

// -1 where it begins with none. `whole`: nothing may follow.
int32_t number_of(std::string_view digits, bool whole) noexcept {
  int32_t value = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool good = error == std::errc() && value >= 0 && (!whole || end == digits.data() + digits.size());
  return good ? value : -1;
}

// Whose plane it is, and which of its sparse cores; -1 for none.
struct Core {
  int32_t device = -1;
  int32_t sparse = -1;
};

// Of `/device:TPU:3` and of `/device:TPU:3 SparseCore 1`.
Core core_of(std::string_view plane) noexcept {
  Core core;
  if (!plane.starts_with(kDevice)) return core;
  std::string_view device = plane.substr(plane.rfind(':') + 1);
  const size_t sparse = device.find(kSparseCore);
  if (sparse != std::string_view::npos) {
    core.sparse = number_of(device.substr(sparse + kSparseCore.size()), true);
    if (core.sparse < 0 || core.sparse >= kMostDevices) return core;
    device = device.substr(0, sparse);
  }
  const int32_t index = number_of(device, true);
  if (index < kMostDevices) core.device = index;
  return core;
}

bool is_modules(std::string_view line) noexcept {
  return std::find(kModules.begin(), kModules.end(), line) != kModules.end();
}

// The number in `jit_step(58)`.
int64_t program_of(std::string_view name) noexcept {
  const size_t open = name.rfind('(');
  uint64_t value = 0;
  if (open == std::string_view::npos || !name.ends_with(')')) return kUnknown;
  const char* last = name.data() + name.size() - 1;
  const auto [end, error] = std::from_chars(name.data() + open + 1, last, value);
  return error == std::errc() && end == last ? static_cast<int64_t>(value) : kUnknown;
}

// A program on a TPU, from when until when.
struct Ran {
  int64_t start_ps;
  int64_t end_ps;
  int64_t program;
  int64_t run;
  uint32_t module;
};

// By plane, in the order of time.
using Ranges = std::unordered_map<uint32_t, std::vector<Ran>>;

// The program that ran on a plane at a moment; nullptr for none.
const Ran* ran_at(const Ranges& programs, uint32_t plane, int64_t moment_ps) noexcept {
  const auto known = programs.find(plane);
  if (known == programs.end()) return nullptr;
  const auto after = std::upper_bound(known->second.begin(), known->second.end(), moment_ps,
                                      [](int64_t moment, const Ran& one) { return moment < one.start_ps; });
  if (after == known->second.begin()) return nullptr;
  const Ran& last = *std::prev(after);
  return last.end_ps >= moment_ps ? &last : nullptr;
}

}  // namespace

void Space::tell_devices() {
  std::vector<bool> has_streams(planes_.size());
  for (Line& line : lines_) {
    line.device = core_of(planes_[line.plane].name).device;
    if (line.device < 0 || !line.name.starts_with(kStream)) continue;
    line.stream = number_of(line.name.substr(kStream.size()), false);
    if (line.stream >= 0) has_streams[line.plane] = true;
  }
  for (Line& line : lines_) {
    if (line.device < 0 || has_streams[line.plane]) continue;
    const int32_t sparse = core_of(planes_[line.plane].name).sparse;
    if (sparse >= 0) {  // a core computes beside the others: a stream of its own
      if (line.name == kSparseOperations) line.stream = static_cast<int32_t>(kOperations.size()) + sparse;
      continue;
    }
    const auto found = std::find(kOperations.begin(), kOperations.end(), line.name);
    if (found != kOperations.end()) line.stream = static_cast<int32_t>(found - kOperations.begin());
  }
}

// Of TPUs an operation is its event's name, and its program the one that ran meanwhile. On the host nothing executes
// what a device does: that are calls of the driver, and threads that hand it over.
void Space::tell_operations() {
  const int operation = text_column("hlo_op");
  const int program = number_column("program_id");
  const int run = number_column("run_id");
  const int module = text_column("hlo_module");
  if (operation < 0 || program < 0 || run < 0 || module < 0) return;
  const auto number = [&](int column, size_t row) { return events_.number(static_cast<size_t>(column), row); };
  Ranges programs;
  for (size_t row = 0; row < events_.size(); ++row) {
    const Line& line = lines_[events_.line[row]];
    if (line.device < 0 || !is_modules(line.name)) continue;
    const std::string_view name = strings_[events_.name[row]];
    const int64_t told = number(program, row);
    const int64_t start_ps = events_.start_ps[row];
    int64_t end_ps = 0;
    if (__builtin_add_overflow(start_ps, events_.duration_ps[row], &end_ps)) end_ps = INT64_MAX;
    programs[line.plane].push_back({start_ps, end_ps, told != kUnknown ? told : program_of(name), number(run, row),
                                    text(name.substr(0, name.find('(')))});
  }
  if (!programs.empty()) {
    for (const int column : {program, run})
      events_.numbers[static_cast<size_t>(column)].resize(events_.size(), kUnknown);
    for (const int column : {operation, module})
      events_.texts[static_cast<size_t>(column)].resize(events_.size(), kNoText);
  }
  for (auto& [plane, ran] : programs) {
    std::stable_sort(ran.begin(), ran.end(), [](const Ran& a, const Ran& b) { return a.start_ps < b.start_ps; });
    for (size_t at = 0; at < ran.size(); ++at) {
      if (ran[at].run == kUnknown) ran[at].run = static_cast<int64_t>(at);
    }
  }
  std::unordered_set<int64_t> carried;
  for (const Program& one : programs_) {
    const int64_t told = program_of(one.name);  // newer profiles have the number in the name only
    carried.insert(told == kUnknown ? one.id : told);
  }
  std::unordered_map<int32_t, uint32_t> main_planes;  // of devices: that of the core which the sparse ones work for
  std::vector<bool> is_sparse(planes_.size());
  for (const auto& [plane, ran] : programs) {
    const Core core = core_of(planes_[plane].name);
    if (core.sparse < 0) main_planes.emplace(core.device, plane);
  }
  for (uint32_t plane = 0; plane < planes_.size(); ++plane) is_sparse[plane] = core_of(planes_[plane].name).sparse >= 0;
  std::unordered_set<int64_t> on_devices;
  for (size_t row = 0; row < events_.size(); ++row) {
    const Line& line = lines_[events_.line[row]];
    if (line.stream < 0) continue;
    const auto main_plane = main_planes.find(line.device);
    const bool helps = is_sparse[line.plane] && main_plane != main_planes.end();
    if ((helps || programs.contains(line.plane)) && !line.name.starts_with(kStream)) {
      if (events_.text(static_cast<size_t>(operation), row) == kNoText)
        put(row, {operation, true, kUnknown, events_.name[row]});
      const Ran* around = ran_at(programs, line.plane, events_.start_ps[row]);
      // What a program hands to a sparse core runs there under a name of its own, which no program has.
      if (helps && (around == nullptr || !carried.contains(around->program))) {
        const Ran* asking = ran_at(programs, main_plane->second, events_.start_ps[row]);
        if (asking != nullptr) around = asking;
      }
      if (around != nullptr) {
        if (number(program, row) == kUnknown) put(row, {program, false, around->program, kNoText});
        if (number(run, row) == kUnknown) put(row, {run, false, around->run, kNoText});
        if (events_.text(static_cast<size_t>(module), row) == kNoText)
          put(row, {module, true, kUnknown, around->module});
      }
    }
    if (number(program, row) != kUnknown) on_devices.insert(number(program, row));
  }
  auto& operations = events_.texts[static_cast<size_t>(operation)];
  const int call = number_column("correlation_id");
  for (size_t row = 0; row < operations.size(); ++row) {
    if (operations[row] == kNoText || lines_[events_.line[row]].device >= 0) continue;
    const bool calls = call >= 0 && number(call, row) != kUnknown;
    if (calls || on_devices.contains(number(program, row))) operations[row] = kNoText;
  }
}

}  // namespace leadline::xla
