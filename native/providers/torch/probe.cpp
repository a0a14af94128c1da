#include "providers/torch/probe.h"

#include <array>
#include <cstring>
#include <vector>

#include "base/safe_pages.h"

namespace leadline::torch {
namespace {

constexpr size_t kSnapshotWords =
    44;  // as far as the debug handle of the layouts known; the object is larger or ends there
constexpr uint32_t kRunsWanted = 3;
// Members between the sequence number and those behind it, in words: array reference (2), hash map (7), vector (3).
constexpr uint32_t kToForwardThread = 1 + 2 + 7 + 3;
constexpr uint32_t kToDebugHandle = kToForwardThread + 3;  // forward thread, handle, is_async
// The name is text or a schema in one place, as large as a text of either binary interface, behind which one byte says
// which it is.
constexpr uint32_t kTextWords[] = {4, 1};

struct Snapshot {
  std::string name;
  const char* name_at = nullptr;
  std::array<int64_t, kSnapshotWords> words{};
};

// Filled on this thread while a probe exists.
thread_local std::vector<Snapshot>* t_snapshots = nullptr;
thread_local const Symbols* t_symbols = nullptr;

std::unique_ptr<ObserverContext> on_start(const RecordFunction& function) {
  if (t_snapshots != nullptr) {
    Snapshot snapshot;
    snapshot.name_at = t_symbols->name(&function);
    snapshot.name = snapshot.name_at;
    std::memcpy(snapshot.words.data(), &function, sizeof snapshot.words);
    t_snapshots->push_back(std::move(snapshot));
  }
  return nullptr;
}

void on_end(const RecordFunction&, ObserverContext*) {}

// Whether the word is the address of something that begins with the address of the name.
bool leads_to(int64_t word, const char* name) noexcept {
  const char* found = nullptr;
  return read_safely(static_cast<uintptr_t>(word), &found, sizeof found) && found == name;
}

}  // namespace

Probe::Probe(const Symbols& symbols) : symbols_(symbols) {
  t_snapshots = new std::vector<Snapshot>();
  t_symbols = &symbols_;
  Callback callback;
  callback.start = on_start;
  callback.end = on_end;
  callback.scopes[static_cast<size_t>(Scope::kFunction)] = true;
  handle_ = symbols_.add_global_callback(callback);
}

Probe::~Probe() {
  symbols_.remove_callback(handle_);
  delete t_snapshots;
  t_snapshots = nullptr;
}

bool Probe::observe(const ProbeRun& run) {
  bool found = false;
  for (const Snapshot& snapshot : *t_snapshots) {
    if (snapshot.name != run.operator_name || found) continue;
    found = true;
    for (uint32_t i = 0; i < kSnapshotWords; ++i) {
      if (snapshot.words[i] != run.sequence) candidates_ &= ~(uint64_t{1} << i);
      const uint32_t debug_handle = i + kToDebugHandle;
      // Before it stands the name: text or the schema of a registered operator, told apart by one byte.
      const bool named_by_schema = i > 0 && (snapshot.words[i - 1] & 0xff) == 1;
      const bool shaped = named_by_schema && debug_handle < kSnapshotWords &&
                          snapshot.words[i + kToForwardThread] == 0 && snapshot.words[i + kToForwardThread + 1] == 0 &&
                          snapshot.words[debug_handle] == -1;
      if (!shaped) shaped_ &= ~(uint64_t{1} << i);
      if (!leads_to(snapshot.words[i], snapshot.name_at)) schemas_ &= ~(uint64_t{1} << i);
    }
  }
  t_snapshots->clear();
  if (found) ++seen_;
  return found;
}

std::optional<Offsets> Probe::conclude(std::string* why) const {
  if (seen_ < kRunsWanted) {
    *why = "the self-test did not see the operator it ran, so PyTorch operators cannot be measured with this torch";
    return std::nullopt;
  }
  for (uint32_t i = 0; i < kSnapshotWords; ++i) {
    if ((candidates_ & shaped_ & (uint64_t{1} << i)) == 0) continue;
    Offsets found{i * 8, (i + kToForwardThread) * 8, (i + 1) * 8, (i - 1) * 8};
    for (const uint32_t words : kTextWords) {
      if (i > words && (schemas_ & (uint64_t{1} << (i - 1 - words))) != 0) found.schema = (i - 1 - words) * 8;
    }
    return found;
  }
  *why =
      "the self-test did not find the autograd sequence number in this torch, so backward operators stay where "
      "autograd runs them";
  return std::nullopt;
}

}  // namespace leadline::torch
