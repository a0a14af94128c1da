// Drawn programs for the host half on the fake Compute Sanitizer, and what it told of them.
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backends/sanitizer/backend.h"
#include "backends/sanitizer/patches.h"
#include "testing/test_monitor.h"

namespace leadline::sanitizer {

using testing::TestMonitor;

template <class F>
F* fake(const char* name) {
  static void* const library = ::dlopen(LEADLINE_SANITIZER_FAKE, RTLD_NOW | RTLD_GLOBAL);
  return reinterpret_cast<F*>(::dlsym(library, name));
}

inline void play(const std::string& text) { REQUIRE(fake<int(const char*)>("fake_sanitizer_play")(text.c_str()) == 0); }
inline std::uint64_t calls(const char* name) { return fake<std::uint64_t(const char*)>("fake_sanitizer_calls")(name); }

// A vector of scenario lines: two kernels of one module, with 256 KiB read and a fourth of it written.
inline const std::string kProgram =
    "context A\n"
    "alloc weights context=A bytes=262144\n"
    "alloc out context=A bytes=65536\n"
    "kernel gemm\n"
    "read weights count=1024 stride=256\n"
    "write out count=256\n"
    "kernel copy\n"
    "read out count=256\n"
    "write weights first=4096 count=256\n"
    "module m context=A functions=gemm,copy\n";

inline Options options() {
  Options made;
  made.candidates = {LEADLINE_SANITIZER_FAKE};
  made.image = "leadline fake patches\n";
  made.image.append(LEADLINE_SANITIZER_TEXT);
  made.shape.page_sizes = {4096, 0, 0, 0};
  made.patches = patches_for(made.shape.want);
  return made;
}

struct Seen {
  std::vector<LaunchRow> launches;
  std::vector<TouchedRow> touched;
  std::vector<DoneRow> done;
  std::map<std::uint32_t, Birth> objects;

  explicit Seen(Backend& backend) : launches(100'000), touched(100'000), done(100'000) {
    launches.resize(backend.launches().take(launches.data(), launches.size()));
    touched.resize(backend.results().touched.take(touched.data(), touched.size()));
    done.resize(backend.results().done.take(done.data(), done.size()));
    std::vector<Birth> births(1000);
    births.resize(backend.objects().births(births.data(), births.size()));
    for (const Birth& birth : births) objects[birth.object] = birth;
  }
  // "launch object-bytes reads writes pages first-end", ascending.
  std::string lines() const {
    std::map<std::pair<std::int64_t, std::uint32_t>, std::string> sorted;
    for (const TouchedRow& row : touched) {
      sorted[{row.launch, row.object}] =
          std::to_string(row.launch) + ": " + std::to_string(objects.at(row.object).bytes) + " " +
          std::to_string(row.reads) + "r " + std::to_string(row.writes) + "w " + std::to_string(row.pages[0]) + "p " +
          (row.pages[1] == 0 ? "" : std::to_string(row.pages[1]) + "P ") + std::to_string(row.first) + "-" +
          std::to_string(row.end) + "\n";
    }
    std::string text;
    for (const auto& [key, line] : sorted) text += line;
    return text;
  }
};

struct Fixture {
  Fixture() {
    play("reset\n");
    TestMonitor::reset([]() -> std::int64_t { return 1000; });
  }
};

inline const std::string kGemm = ": 262144 1024r 0w 64p 0-261892\n";
inline const std::string kGemmOut = ": 65536 0r 256w 1p 0-1024\n";

}  // namespace leadline::sanitizer
