// A Python drawn by hand, for tests: frames are numbers, statements are (function, line).
#pragma once

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "stack/python_source.h"

namespace leadline::testing {

struct FakeFrame {
  uintptr_t frame;
  uintptr_t code;
  uintptr_t line;
  uintptr_t self = 0;
};

// One chain for all threads, root first; only its counters change while several use it.
struct FakePython {
  static inline std::vector<FakeFrame> chain;
  static inline std::map<uintptr_t, std::string> functions;
  static inline std::map<uintptr_t, uintptr_t> fingerprints;
  static inline std::atomic<uint64_t> codes_freed{0};
  static inline std::set<uintptr_t> suspending;  // codes of generators and coroutines
  static inline std::set<uintptr_t> dead;        // objects
  static inline std::atomic<int> walks{0};
  static inline std::atomic<int> frames_walked{0};

  static void reset() {
    chain.clear();
    functions.clear();
    fingerprints.clear();
    suspending.clear();
    dead.clear();
    walks = 0;
    frames_walked = 0;
  }

  static uintptr_t top() { return chain.empty() ? 0 : chain.back().frame; }
  // Frames outside of and with `top`.
  static size_t depth_of(uintptr_t top) {
    size_t depth = chain.size();
    while (depth > 0 && chain[depth - 1].frame != top) --depth;
    return depth;
  }
  static size_t walk(uintptr_t top, RawFrame* out, size_t room, uintptr_t stop, bool* found) {
    ++walks;
    *found = stop == 0;
    size_t count = 0;
    for (size_t i = depth_of(top); i-- > 0;) {
      ++frames_walked;
      if (count < room) out[count] = {chain[i].frame, chain[i].code, chain[i].line};
      ++count;
      if (chain[i].frame == stop) {
        *found = true;
        break;
      }
    }
    return count;
  }
  static size_t matching(uintptr_t top, const ShownFrame* shown, size_t from, size_t count, uintptr_t end,
                         bool inside) {
    size_t depth = depth_of(top);
    size_t level = count;
    for (; depth > 0 && level == count; --depth) {
      for (level = count; level > from && shown[level - 1].raw.frame != chain[depth - 1].frame;) --level;
      if (level > from) break;
      level = count;
    }
    if (depth == 0) return kNotAligned;
    size_t kept = level;
    for (; level > from; --level, --depth) {
      if (depth == 0 || chain[depth - 1].frame != shown[level - 1].raw.frame) return kNotAligned;
      const FakeFrame& frame = chain[depth - 1];
      const ShownFrame& known = shown[level - 1];
      const bool same = frame.code == known.raw.code && frame.line == known.raw.instruction &&
                        (known.self == 0 || known.self == frame.self);
      if (!same) kept = level - 1;
    }
    if (!inside && (depth == 0 ? 0 : chain[depth - 1].frame) != end) return kNotAligned;
    return kept;
  }
  static uintptr_t first_local(uintptr_t frame, uintptr_t) {
    for (const FakeFrame& known : chain) {
      if (known.frame == frame) return known.self;
    }
    return 0;
  }
  static uintptr_t fingerprint(uintptr_t code) {
    const auto found = fingerprints.find(code);
    return found == fingerprints.end() ? code : found->second;
  }
  static void describe(const RawFrame& raw, FrameText* out) {
    out->name = functions[raw.code];
    out->file = "train.py";
    out->line = static_cast<int32_t>(raw.instruction);
    out->first_line = 1;
  }
  static void describe_object(uintptr_t object, std::string* class_name) {
    *class_name = dead.contains(object) ? "" : "Net";
  }
  static bool local_name_of(uintptr_t, uintptr_t, std::string*) { return false; }
  static uintptr_t type_of(uintptr_t) { return 1; }
  static bool has_died(uintptr_t object) { return dead.contains(object); }

  static bool suspends(uintptr_t code) { return suspending.contains(code); }
  static bool entered_from_c(uintptr_t) { return false; }

  static const PythonSource* source() {
    static constexpr PythonSource kSource = {
        .top = top,
        .walk = walk,
        .matching = matching,
        .first_local = first_local,
        .fingerprint = fingerprint,
        .codes_freed = &codes_freed,
        .describe = describe,
        .describe_object = describe_object,
        .local_name_of = local_name_of,
        .type_of = type_of,
        .has_died = has_died,
        .suspends = suspends,
        .entered_from_c = entered_from_c,
    };
    return &kSource;
  }
};

}  // namespace leadline::testing
