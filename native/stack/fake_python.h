// A Python drawn by hand, for tests: frames are numbers, statements are (function, line).
#pragma once

#include <map>
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

// The chain of the one thread that tests use, root first.
struct FakePython {
  static inline std::vector<FakeFrame> chain;
  static inline std::map<uintptr_t, std::string> functions;
  static inline std::map<uintptr_t, uintptr_t> fingerprints;
  static inline std::atomic<uint64_t> codes_freed{0};
  static inline int walks = 0;

  static void reset() {
    chain.clear();
    functions.clear();
    fingerprints.clear();
    walks = 0;
  }

  static uintptr_t top() { return chain.empty() ? 0 : chain.back().frame; }
  static size_t walk(uintptr_t, RawFrame* out, size_t room, uintptr_t stop, bool* found) {
    ++walks;
    *found = stop == 0;
    size_t count = 0;
    for (size_t i = chain.size(); i-- > 0;) {
      if (count < room) out[count] = {chain[i].frame, chain[i].code, chain[i].line};
      ++count;
      if (chain[i].frame == stop) {
        *found = true;
        break;
      }
    }
    return count;
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
  static void describe_object(uintptr_t, std::string* class_name) { *class_name = "Net"; }
  static bool local_name_of(uintptr_t, uintptr_t, std::string*) { return false; }
  static uintptr_t type_of(uintptr_t) { return 1; }

  static const PythonSource* source() {
    static constexpr PythonSource kSource = {
        top, walk, first_local, fingerprint, &codes_freed, describe, describe_object, local_name_of, type_of};
    return &kSource;
  }
};

}  // namespace leadline::testing
