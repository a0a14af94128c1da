// Nanoseconds of what the NVIDIA provider adds, with the real monitor and collector behind it and no GPU: a launch's
// callbacks on the program's thread, and a record's fold on ours. A number is only comparable with others of the same
// run on the same machine; the program's own Python frames and CUPTI's own work are not in it.
//
//   nvidia_bench            one line per operation: name, ns, best of several rounds
//   nvidia_bench JSON       the same as one JSON object
//   nvidia_bench once launch|record COUNT   so many launches, and so many records as well, for callgrind
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "collector/collector.h"
#include "gpu/activity_fold.h"
#include "providers/nvidia/callbacks.h"
#include "providers/nvidia/in_callback.h"
#include "providers/nvidia/occupancy.h"
#include "providers/nvidia/records.h"

namespace {

using namespace leadline;

constexpr int kRounds = 9;
constexpr std::uint32_t kNames = 200;    // distinct kernels of a training program
constexpr std::uint32_t kPlaces = 3000;  // distinct calls of a step
constexpr std::uint32_t kSteps = 30;

struct Result {
  std::string name;
  double ns = 0;
};

// The vendor's side: names and ids of the calls that are made here.
constexpr std::uint32_t kDriverLaunch = 1;

nvidia::cupti::Result callback_name(nvidia::cupti::Domain domain, std::uint32_t cbid, const char** name) {
  if (cbid != 1) return nvidia::cupti::kInvalidParameter;
  if (domain != nvidia::cupti::Domain::kDriver) return nvidia::cupti::kInvalidParameter;
  *name = "cuLaunchKernel";
  return nvidia::cupti::kSuccess;
}
nvidia::cupti::Result device_id(void*, std::uint32_t* device) {
  *device = 0;
  return nvidia::cupti::kSuccess;
}

nvidia::CuptiFunctions vendor() {
  nvidia::CuptiFunctions functions;
  functions.get_callback_name = callback_name;
  functions.get_device_id = device_id;
  return functions;
}

class Region {
 public:
  explicit Region(const char* name) { emit(LEADLINE_BEGIN, name); }
  ~Region() { emit(LEADLINE_END, ""); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

 private:
  static void emit(leadline_phase phase, const char* name) {
    leadline_event event{};
    event.domain = LEADLINE_DOMAIN_REGION;
    event.phase = phase;
    event.of.region.name = name;
    leadline_monitor_emit(&event);
  }
};

// A launch as CUPTI tells it: begin and end of the driver's call.
class Launcher {
 public:
  explicit Launcher(nvidia::Callbacks& callbacks) : callbacks_(callbacks) {
    driver_.correlation_id = 1;
    driver_.params = params_;
    driver_.return_value = &result_;
    driver_.context = params_;
  }
  std::uint32_t launch() {
    ++driver_.correlation_id;
    tell(nvidia::cupti::Site::kEnter);
    tell(nvidia::cupti::Site::kExit);
    return driver_.correlation_id;
  }

 private:
  void tell(nvidia::cupti::Site site) {
    driver_.site = site;
    const nvidia::InCallback inside;
    if (inside) callbacks_.handle(nvidia::cupti::Domain::kDriver, kDriverLaunch, &driver_);
  }
  nvidia::Callbacks& callbacks_;
  nvidia::cupti::CallbackData driver_{};
  std::int32_t result_ = 0;
  char params_[64] = {};
};

class Bench {
 public:
  Bench() {
    Monitor::instance().subscribe(LEADLINE_DOMAIN_REGION | LEADLINE_DOMAIN_GPU_API | LEADLINE_DOMAIN_GPU_ACTIVITY,
                                  &collector_, &subscription_);
    fold_.describe({h100()});
    calls_.load(functions_);
    callbacks_.open();
    nvidia::InCallback::use(
        reinterpret_cast<nvidia::Measuring*>(this));  // any will do: it is only asked whether there is one
    for (std::uint32_t i = 0; i < kNames; ++i) {
      // As long as the names of torch's element-wise kernels are.
      names_.push_back("_ZN2at6native29vectorized_elementwise_kernelILi4E" + std::string(i % 3 == 0 ? 40 : 240, 'x') +
                       std::to_string(i));
    }
    for (std::uint32_t i = 0; i < kPlaces; ++i) places_.push_back("place " + std::to_string(i));
  }
  ~Bench() {
    nvidia::InCallback::use(nullptr);
    Monitor::instance().unsubscribe(subscription_);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  // With their records, which are folded as they come, or without.
  void once(std::uint32_t count, bool records) {
    const Region step("step");
    Launcher launcher(callbacks_);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t id = launcher.launch();
      nvidia::cupti::KernelRecord record;
      kernel(record, id, names_[i % kNames].c_str());
      if (records) fold_.add(nvidia::decode(reinterpret_cast<const nvidia::cupti::Record&>(record), kVersion, 0));
    }
  }

  void launches() {
    const Region step("step");
    Launcher launcher(callbacks_);
    best("launch: 2 callbacks, one place", 100'000, [&] {
      for (std::uint32_t i = 0; i < 100'000; ++i) launcher.launch();
    });
  }

  // Every step makes the same launches from the same places, as training does; only the fold is timed.
  void training() {
    Launcher launcher(callbacks_);
    std::vector<nvidia::cupti::KernelRecord> records(kPlaces);
    fold_rounds("fold: kernel, 3000 places", records, [&] {
      for (std::uint32_t i = 0; i < kPlaces; ++i) {
        const Region place(places_[i].c_str());
        kernel(records[i], launcher.launch(), names_[i % kNames].c_str());
      }
    });
    const Region place("one place");
    fold_rounds("fold: kernel, one place", records, [&] {
      for (nvidia::cupti::KernelRecord& record : records) kernel(record, launcher.launch(), names_[1].c_str());
    });
  }

  void copies() {
    Launcher launcher(callbacks_);
    std::vector<nvidia::cupti::MemcpyRecord> records(kPlaces);
    const Region place("copies");
    fold_rounds("fold: copy", records, [&] {
      for (nvidia::cupti::MemcpyRecord& record : records) {
        record = {};
        record.kind = nvidia::cupti::Kind::kMemcpy;
        record.copy_kind = 1;
        record.source_kind = 2;
        record.destination_kind = 3;
        record.bytes = 4096;
        record.correlation_id = launcher.launch();
        finish(record);
      }
    });
  }

  void graphs() {
    Launcher launcher(callbacks_);
    constexpr std::uint64_t kGraph = 7;
    for (std::uint32_t i = 0; i < kPlaces; ++i) {
      const Region place(places_[i].c_str());
      tables_.graphs.created(kGraph << 32 | i, kGraph, leadline_monitor_context());
    }
    std::vector<nvidia::cupti::KernelRecord> records(kPlaces);
    const Region place("replay");
    fold_rounds("fold: node of a replayed graph", records, [&] {
      const std::uint32_t id = launcher.launch();
      for (std::uint32_t i = 0; i < kPlaces; ++i) {
        kernel(records[i], id, names_[i % kNames].c_str());
        records[i].graph_node_id = kGraph << 32 | i;
        records[i].graph_id = kGraph;
      }
    });
  }

 private:
  template <class F>
  void best(const std::string& name, std::uint32_t operations, F&& run) {
    double least = 1e300;
    for (int round = 0; round < kRounds; ++round) {
      const std::int64_t begin = now_ns();
      run();
      least = std::min(least, static_cast<double>(now_ns() - begin) / operations);
    }
    results.push_back({name, least});
  }

  template <class Record>
  void finish(Record& record) {
    record.start = static_cast<std::uint64_t>(device_ns_);
    record.end = static_cast<std::uint64_t>(device_ns_ + 900);
    device_ns_ += 1000;
    record.stream_id = 7;
    record.context_id = 1;
  }
  void kernel(nvidia::cupti::KernelRecord& record, std::uint32_t id, const char* name) {
    record = {};
    record.kind = nvidia::cupti::Kind::kConcurrentKernel;
    record.correlation_id = id;
    record.name = name;
    record.registers_per_thread = 40;
    record.grid[0] = 512;
    record.grid[1] = record.grid[2] = record.block[1] = record.block[2] = 1;
    record.block[0] = 256;
    finish(record);
  }

  template <class Record, class Make>
  void fold_rounds(const std::string& name, std::vector<Record>& records, Make&& make) {
    double least = 1e300;
    for (int round = 0; round < kRounds; ++round) {
      std::int64_t spent = 0;
      for (std::uint32_t step = 0; step < kSteps; ++step) {
        make();
        const std::int64_t begin = now_ns();
        for (const Record& record : records) {
          fold_.add(nvidia::decode(reinterpret_cast<const nvidia::cupti::Record&>(record), kVersion, 0));
        }
        spent += now_ns() - begin;
      }
      least = std::min(least, static_cast<double>(spent) / (kSteps * static_cast<double>(records.size())));
    }
    results.push_back({name, least});
  }

  static gpu::DeviceInfo h100() {
    gpu::DeviceInfo device;
    device.major = 9;
    device.multiprocessors = 132;
    device.max_threads_per_multiprocessor = 2048;
    device.max_blocks_per_multiprocessor = 32;
    device.registers_per_multiprocessor = 65536;
    device.shared_per_multiprocessor = 233472;
    device.reserved_shared_per_block = 1024;
    return device;
  }

  static constexpr std::uint32_t kVersion = nvidia::cupti::kVersion13_0;
  Collector collector_{CollectorOptions{}};
  leadline_subscription subscription_ = 0;
  nvidia::CuptiFunctions functions_ = vendor();
  nvidia::ApiTable calls_;
  gpu::LaunchTables tables_;
  nvidia::Callbacks callbacks_{functions_, calls_, tables_};
  gpu::KernelSources sources_;
  gpu::ActivityFold fold_{tables_.launches, tables_.graphs, sources_, nvidia::kVendor};
  std::int64_t device_ns_ = now_ns();
  std::vector<std::string> names_;
  std::vector<std::string> places_;

 public:
  std::vector<Result> results;
};

}  // namespace

int main(int count, char** arguments) {
  const bool json = count > 1 && std::strcmp(arguments[1], "JSON") == 0;
  Bench bench;
  if (count == 4 && std::strcmp(arguments[1], "once") == 0) {
    bench.once(static_cast<std::uint32_t>(std::strtoul(arguments[3], nullptr, 10)),
               std::strcmp(arguments[2], "record") == 0);
    return 0;
  }
  bench.launches();
  bench.training();
  bench.copies();
  bench.graphs();
  if (json) std::printf("{");
  for (std::size_t i = 0; i < bench.results.size(); ++i) {
    const Result& result = bench.results[i];
    if (json) {
      std::printf("%s\"%s\": %.1f", i == 0 ? "" : ", ", result.name.c_str(), result.ns);
    } else {
      std::printf("%-36s %8.1f\n", result.name.c_str(), result.ns);
    }
  }
  std::printf(json ? "}\n" : "");
  return 0;
}
