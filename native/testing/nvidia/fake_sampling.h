// Samples of the program counter on the fake GPU: every launch of a kernel inside an open range gives the samples that
// the test has set for it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "providers/nvidia/pc_sampling_abi.h"

namespace leadline::testing {

namespace cupti = nvidia::cupti;

// What each launch of a kernel adds at one instruction.
struct FakePc {
  std::string function;  // the kernel, or a function that it calls
  std::uint64_t offset = 0;
  std::uint32_t reason = 0;  // row of the names, or beyond: a reason that the library does not name
  std::uint32_t count = 0;
  std::uint32_t latency = 0;
};

struct FakeSampling {
  // What a test sets.
  std::map<std::string, std::vector<FakePc>> pcs;  // by kernel
  cupti::Result enable_result = cupti::kSuccess;
  std::int32_t refused_mode = 0;
  bool refuses_hardware_buffer = false;
  std::uint64_t drop = 0;           // samples that the next data reports as dropped
  bool buffer_full = false;         // told once
  bool late = false;                // data of a range comes with that of the next one
  std::int64_t slower_percent = 0;  // kernels inside ranges
  std::size_t at_once = 1000;       // records in one answer

  struct Pending {
    FakePc pc;
    std::uint64_t code = 0;
    std::uint64_t range = 0;
    std::uint32_t correlation = 0;
    std::uint32_t launches = 1;
  };
  struct OfContext {
    bool on = false;
    bool open = false;
    std::int32_t mode = 0;
    std::uint64_t range = 0;
    std::deque<Pending> pending;
  };
  std::map<void*, OfContext> contexts;
  cupti::HashCode hash = nullptr;
  std::uint64_t code = 0;  // of the module that was loaded last
  std::deque<std::string> names;
  std::uint64_t starts = 0;
  std::uint64_t calls_while_off = 0;
  std::uint64_t calls_beside = 0;  // by threads of a tool while the program is inside the driver, which hung on an H100
  std::uint64_t stops = 0;

  bool open(void* context) const {
    const auto found = contexts.find(context);
    return found != contexts.end() && found->second.open;
  }
  std::int64_t duration(void* context, std::int64_t ns) const {
    return open(context) ? ns + ns * slower_percent / 100 : ns;
  }
  void ran(void* context, const std::string& kernel, std::uint32_t correlation);
  const char* name(const std::string& text);
  void reset() { *this = {}; }
};

// The vendor's short names; each has two counters, the second for samples in which nothing was issued.
std::span<const char* const> fake_stall_names();
// Row of a reason by the vendor's short name; 1000 and more for a number.
std::uint32_t fake_stall_reason(const std::string& name);

}  // namespace leadline::testing
