// For tests: every path that was brought up to date by less than a whole walk is compared with one.
#include <atomic>
#include <vector>

#include "stack/call_path.h"

namespace leadline {
namespace {

std::atomic<uint64_t> g_checked{0};
std::atomic<uint64_t> g_wrong{0};

}  // namespace

constinit std::atomic<bool> CallPath::checked_{false};

CallPath::WalkCheck CallPath::check_walks(bool on) noexcept {
  const WalkCheck seen{g_checked.exchange(0), g_wrong.exchange(0)};
  checked_.store(on);
  return seen;
}

void CallPath::check_walk() const {
  std::vector<RawFrame> chain(64);
  bool found = false;
  size_t count = python_->walk(top_, chain.data(), chain.size(), 0, &found);
  if (count > chain.size()) {
    chain.resize(count);
    count = python_->walk(top_, chain.data(), chain.size(), 0, &found);
  }
  bool whole = true;
  size_t left = count;  // chain[0..left) is further inside than what was compared
  for (const ShownFrame& shown : shown_) {
    // Regions leave out the machinery that opened them.
    while (left > 0 && chain[left - 1].frame != shown.raw.frame && !scopes_.empty()) --left;
    whole = left > 0 && chain[left - 1].frame == shown.raw.frame && chain[left - 1].code == shown.raw.code &&
            chain[left - 1].instruction == shown.raw.instruction;
    if (!whole) break;
    --left;
  }
  const bool above = shown_.size() > base();
  const uintptr_t innermost = above ? shown_.back().raw.frame : scopes_.empty() ? 0 : scopes_.back().anchor;
  g_checked.fetch_add(1);
  if (!whole || innermost != top_) g_wrong.fetch_add(1);
}

}  // namespace leadline
