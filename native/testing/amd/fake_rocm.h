// The state behind the fake HIP, HSA, rocprofiler-sdk and roctx: one per process, in the fake libhsa-runtime64.
//
// The SDK's side does what the real one does: a tool is asked for while HIP starts (ROCP_TOOL_LIBRARIES) or when it
// forces it; HIP calls call the tool back at begin and end; a dispatch asks for a correlation id and becomes a record,
// kept until a flush delivers it, on a thread of the SDK's own, the way the test asks for.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "providers/amd/counters_abi.h"
#include "providers/amd/pc_sampling_abi.h"
#include "providers/amd/rocprofiler_abi.h"
#include "providers/amd/roctracer_abi.h"

namespace leadline::testing::rocm {

namespace sdk = amd::sdk;
namespace tracer = amd::tracer;

// The "function" handle of a launch.
struct Kernel {
  const char* name = "kernel";
  std::int64_t duration_ns = 1000;
  std::int32_t vgprs = 32;
  std::int32_t static_lds = 0;
  bool fails = false;  // the launch returns an error and runs nothing
  std::int32_t agprs = 0;
  std::int32_t sgprs = 16;
  std::int32_t scratch = 0;
};

struct Node {
  Kernel kernel;
};
struct Graph {
  std::vector<Node> nodes;
};
struct Stream {
  std::uint32_t id = 0;
  std::int32_t device = 0;
  std::int64_t ready_ns = 0;
  Graph* capturing = nullptr;
  std::int32_t scratch = 0;  // bytes per work-item that its queue has
};
struct Event {
  std::int64_t at_ns = 0;
};

struct Device {
  std::string architecture = "gfx942";
  std::string product = "AMD Instinct MI300X (fake)";
  std::uint32_t target = 90402;
  std::uint32_t compute_units = 304;
  std::uint32_t wave = 64;
  std::uint32_t max_waves = 8;
  std::uint32_t simds = 4;
  std::uint32_t bus = 0xc1;
  std::uint64_t memory_bytes = 192ull << 30;
};

// How deliveries misbehave.
struct Delivery {
  enum class Order { kInOrder, kReversed, kShuffled };
  Order order = Order::kInOrder;
  std::size_t hold_back = 0;  // newest records kept until the second flush after
  std::size_t drop = 0;       // oldest records dropped and reported
  std::size_t records_per_buffer = 64;
};

class FakeRocm {
 public:
  static FakeRocm& instance();

  // What a test sets before the program runs.
  std::uint32_t sdk_version = 10000;  // below 10000: the layout of callbacks before 1.0
  std::vector<Device> devices;
  Delivery delivery;
  bool blind = false;    // the SDK sees HIP calls and no queues, as when HSA started before it
  bool refuses = false;  // it takes no buffer service
  bool unasked = false;  // ids of dispatches are not asked for: records come with an id of nobody
  bool real_clock = false;
  bool scratch_sizes = true;  // releases later than 1.0 say how much scratch memory was taken
  // What each launch of a kernel adds while its device is sampled.
  struct Sampled {
    std::string kernel;
    std::uint64_t offset = 0;
    std::uint32_t reason = 0;  // 15: the wave was issued
    std::uint32_t count = 0;
  };
  std::vector<Sampled> sampled;
  sdk::SamplingMethod sampling_method = sdk::SamplingMethod::kStochastic;
  sdk::Status sampling_status = 0;  // of configuring it

  // The clock: the SDK's time is this plus kEpoch.
  static constexpr std::int64_t kEpoch = 4'000'000'000'000;
  static constexpr std::int64_t kScratchNs = 2000;  // that taking scratch memory lasts
  std::atomic<std::int64_t> now_ns{1'000'000};
  std::int64_t tick(std::int64_t ns);

  // Program side.
  void start_hip();
  std::atomic<bool> hip_started{false};
  Stream* stream(std::uint32_t id, std::int32_t device = 0);
  Event* event(std::uint32_t id);
  Graph* new_graph();
  void launch(Stream* stream, const Kernel& kernel, sdk::Dim3 blocks, sdk::Dim3 threads, std::uint32_t lds);
  void copy(Stream* stream, sdk::CopyOperation operation, std::size_t bytes, std::int64_t duration_ns,
            std::int32_t to_device = -1);
  void replay(Graph* graph, Stream* stream);
  void synchronize(Stream* stream);
  // The driver takes scratch memory of a queue back, because its kernel is done or because it was idle.
  void take_scratch_back(Stream* stream, sdk::ScratchOperation operation);

  // SDK side.
  struct Service {
    std::set<std::int32_t> operations;  // empty: all
    sdk::ApiCallback callback = nullptr;
    void* data = nullptr;
  };
  std::map<std::int32_t, Service> callbacks;  // by kind
  std::set<std::int32_t> buffered;            // kinds
  std::map<std::uint64_t, sdk::BufferCallback> more_buffers;
  std::uint64_t sampling_context = 0;  // 0: not configured
  std::uint64_t sampling_buffer = 0;
  std::atomic<bool> sampling_on{false};
  void flush_samples();
  // Counters: what each device offers, how many it counts at once, what a kernel counts (by kernel and counter).
  std::vector<std::string> counters{"OccupancyPercent", "FETCH_SIZE",    "WRITE_SIZE",    "MfmaUtil",
                                    "SQ_INSTS_VALU",    "SQ_INSTS_SALU", "SQ_INSTS_SMEM", "SQ_INSTS_LDS"};
  std::size_t counters_at_once = 8;
  std::map<std::pair<std::string, std::string>, double> counted;
  sdk::Status counting_status = 0;  // of configuring it
  std::map<std::uint64_t, std::vector<std::uint64_t>> counter_configs;
  std::uint64_t counting_context = 0;  // 0: not configured
  std::uint64_t counting_buffer = 0;
  bool counting_on = false;
  sdk::DispatchCallback choose_counters = nullptr;
  void* choose_data = nullptr;
  void flush_counters();
  void read_counters_of_environment();  // FAKE_COUNTERS (kernel,counter,value ...), FAKE_COUNTING (a status)
  sdk::BufferCallback buffer_callback = nullptr;
  sdk::CorrelationRequest request = nullptr;
  std::atomic<int> initialized{0};
  std::atomic<bool> active{false};
  std::uint64_t noisy_operations = 0;

  int configure(sdk::Configure tool);  // as the SDK does when it configures itself with one tool
  void finalize();
  void tell(std::int32_t kind, std::int32_t operation, sdk::Phase phase, void* payload);
  void flush();
  void reset();
  // FAKE_BLIND, FAKE_REFUSES, FAKE_SDK (10000), FAKE_DEVICES (2), FAKE_ARCH (gfx1100), FAKE_SAMPLES
  // (kernel,offset,reason,count ...), FAKE_SAMPLING (host-trap, or a status that refuses it).
  void read_environment();

  // roctracer's side, which serves one tool at a time.
  struct Traced {
    tracer::CallCallback callback = nullptr;
    void* user = nullptr;
  };
  std::map<std::uint32_t, Traced> traced_calls;  // by its number, one above the SDK's
  std::set<std::uint32_t> traced_work;           // operations
  tracer::Properties traced_pool{};
  tracer::RoctxCallback older_roctx = nullptr;
  // Of the call that begins or ends on this thread.
  void trace(const char* name, tracer::Phase phase, const void* arguments, std::size_t bytes);
  void flush_traced();
  void load_hsa_tools();  // as HSA does while it starts

  std::int32_t kind_hip() const { return 5; }
  std::int32_t kind_hsa() const { return 2; }  // of its extensions
  std::int32_t kind_rccl() const { return 14; }
  std::int32_t kind_marker() const { return 7; }
  std::int32_t kind_code() const { return 10; }
  std::int32_t kind_stream() const { return sdk_version >= 10000 ? 20 : -1; }

  std::recursive_mutex mutex;  // callbacks run outside it

 private:
  std::uint64_t kernel_id(const Kernel& kernel);
  std::uint64_t ask(std::int32_t kind);
  void keep_scratch(const Stream& stream, sdk::ScratchOperation operation, std::int64_t start, std::uint64_t bytes);
  template <class T>
  T* keep(std::unique_ptr<T> made) {
    kept_.push_back(std::move(made));
    return static_cast<T*>(kept_.back().get());
  }

  struct Record {
    std::uint32_t kind;
    std::vector<std::uint8_t> bytes;
  };
  std::vector<std::shared_ptr<void>> kept_;
  std::map<std::pair<std::int32_t, std::uint32_t>, Stream*> streams_;
  std::map<std::uint32_t, Event*> events_;
  std::map<std::string, std::uint64_t> kernels_;
  std::deque<Record> records_;
  std::deque<Record> samples_;
  std::deque<Record> counted_records_;
  std::uint64_t next_dispatch();
  std::uint64_t wanted_counters(std::uint64_t agent, std::uint64_t dispatch);
  void count(const Kernel& kernel, std::uint64_t config, const sdk::DispatchRecord& record);
  std::vector<tracer::Record> traced_;
  std::set<std::string> traced_names_;  // its elements stay where they are
  std::atomic<std::uint64_t> traced_correlation_{0};
  void keep_traced(tracer::Operation operation, std::uint32_t kind, const Stream& stream, std::int64_t start,
                   std::size_t bytes, const char* kernel);
  void sample(const Kernel& kernel, std::uint64_t external);
  std::uint64_t dispatches_ = 0;
  std::atomic<std::uint64_t> correlations_{1};
  std::vector<const sdk::ToolConfiguration*> tools_;
  std::mt19937 random_{7};
};

// HIP calls: their names in the order of the fake SDK's numbers.
extern const char* const kHipCalls[];
std::int32_t hip_operation(const char* name);
std::int32_t hip_operations();

}  // namespace leadline::testing::rocm
