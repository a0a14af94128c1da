// What of rocprofiler-sdk's counting of dispatches Leadline uses, declared by us.
//
// From include/rocprofiler-sdk/{counters,counter_config,dispatch_counting_service,fwd}.h of ROCm/rocprofiler-sdk; of
// these the `triton` wheel has fwd.h alone, so tests/amd/test_abi.py compares CounterValue, and with numbers the rest
// is proven over the fake SDK only.
#pragma once

#include "providers/amd/rocprofiler_abi.h"

namespace leadline::amd::sdk {

inline constexpr Status kExceedsHardware = 38;        // more counters than the device counts at once
inline constexpr std::uint32_t kCountedDispatch = 1;  // kinds of records of Category::kCounters
inline constexpr std::uint32_t kCounterValue = 2;
inline constexpr std::int32_t kCounterInfoVersion = 1;

struct CounterId {
  std::uint64_t handle = 0;
};
struct CounterConfig {
  std::uint64_t handle = 0;
};

struct CounterInfo {
  CounterId id;
  const char* name;
  const char* description;
  const char* block;
  const char* expression;
  std::uint8_t flags;
  std::uint8_t reserved[7];
};

// Of a counter of one instance of a unit of the device; all of a dispatch stand behind its record.
struct CounterValue {
  std::uint64_t instance;
  double value;
  std::uint64_t dispatch;
  UserData user;
  std::uint64_t agent;
};

// Before 1.0 the correlation id was without its third member.
struct CountedDispatch {
  std::uint64_t size;
  std::uint64_t values;
  std::uint64_t correlation_internal;
  UserData correlation_external;
  std::uint64_t ancestor;
  std::uint64_t start;
  std::uint64_t end;
  DispatchInfo info;
};
struct OldCountedDispatch {
  std::uint64_t size;
  std::uint64_t values;
  std::uint64_t correlation_internal;
  UserData correlation_external;
  std::uint64_t start;
  std::uint64_t end;
  DispatchInfo info;
};

// Of a dispatch that is about to be handed to a device.
struct Dispatching {
  std::uint64_t size;
  std::uint64_t correlation_internal;
  UserData correlation_external;
  std::uint64_t ancestor;
  std::uint64_t start;
  std::uint64_t end;
  DispatchInfo info;
};
struct OldDispatching {
  std::uint64_t size;
  std::uint64_t correlation_internal;
  UserData correlation_external;
  std::uint64_t start;
  std::uint64_t end;
  DispatchInfo info;
};

using CountersCallback = Status (*)(std::uint64_t agent, CounterId* counters, std::size_t count, void*);
using DispatchCallback = void (*)(Dispatching, CounterConfig*, UserData*, void*);

}  // namespace leadline::amd::sdk
