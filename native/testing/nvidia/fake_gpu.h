// The state behind the fake driver, runtime and CUPTI: one per process, in the fake libcuda.
//
// Every API call passes through ApiScope, which does what CUPTI's hook in the driver does: assign a correlation id,
// call the subscriber at begin and end. Work becomes activity records, kept until a flush delivers them the way the
// test asks for.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "providers/nvidia/cuda_abi.h"
#include "providers/nvidia/cupti_abi.h"
#include "testing/nvidia/fake_buffers.h"
#include "testing/nvidia/fake_counting.h"
#include "testing/nvidia/fake_sampling.h"

namespace leadline::testing {

namespace cupti = nvidia::cupti;
namespace cuda = nvidia::cuda;

struct FakeDevice {
  std::string name = "NVIDIA H200 (fake)";
  std::map<cuda::Attribute, std::int32_t> attributes;
  std::size_t memory_bytes = 141ull << 30;
};

struct FakeContext {
  std::uint32_t id = 0;
  std::int32_t device = 0;
};

struct FakeEvent {
  std::int64_t at_ns = 0;
};

struct FakeKernel;
struct FakeGraph;

struct FakeGraphNode {
  std::uint64_t id = 0;  // number of the graph << 32 | number in the graph, which a clone keeps
  std::string kernel;
  std::int64_t duration_ns = 0;
  FakeGraph* held = nullptr;  // a graph as a node
};

struct FakeGraph {
  std::uint32_t id = 0;
  std::vector<FakeGraphNode*> nodes;
};

struct FakeStream {
  std::uint32_t id = 0;
  std::int32_t device = 0;
  std::int64_t ready_ns = 0;
  FakeGraph* capturing = nullptr;
};

// How deliveries misbehave.
struct Delivery {
  enum class Order { kInOrder, kReversed, kShuffled };
  Order order = Order::kInOrder;
  std::size_t hold_back = 0;  // newest records kept until a forced flush
  std::size_t drop = 0;       // oldest records dropped and reported
  std::size_t records_per_buffer = 64;
  bool per_thread = false;  // none of the above: as CUPTI 13 does, see FakeBuffers
};

struct KernelShape {
  std::int32_t grid = 1;
  std::int32_t block = 32;
  std::uint16_t registers = 32;
  std::int32_t static_shared = 0;
  std::int32_t dynamic_shared = 0;
};

class FakeGpu {
 public:
  static FakeGpu& instance();

  // What a test sets before the program runs.
  std::uint32_t cupti_version = 130001;
  std::int32_t driver_cuda_version = 13000;
  cuda::Result init_result = cuda::kSuccess;  // an error: cuInit answers it and CUDA does not start
  std::atomic<bool> started{true};            // false: the program has yet to call cuInit (also by environment)
  std::vector<FakeDevice> devices;
  std::string holder;          // another tool that has CUPTI
  bool holder_shares = false;  // and allows others
  cupti::Result subscribe_result = cupti::kSuccess;
  cupti::Result activity_result = cupti::kSuccess;
  bool inner_ids_differ = false;  // a driver call inside a runtime call gets its own correlation id
  bool tells_inner_calls = true;  // driver calls inside runtime calls have callbacks, as far as any CUPTI was seen
  std::atomic<std::uint64_t> callbacks_told{0};
  bool names_work = true;
  std::int64_t loads_ns = 0;  // the next launch loads its code first, for so long
  Delivery delivery;
  FakeBuffers buffers{*this};
  // What devices did, in the order of launches: begin and end of each piece of work, where a test wants it.
  bool keeps_truth = false;
  std::vector<std::pair<std::int64_t, std::int64_t>> truth;
  FakeSampling sampling;
  FakeCounting counting;
  bool subscribed_when_counting_ended = false;
  // What a test sets: calls into CUPTI that take real time, and one that does not come back until answer() is called.
  std::map<std::string, std::chrono::milliseconds> costs;
  std::atomic<bool> flushes_by_itself{false};  // cuptiActivityFlushPeriod is there
  std::atomic<std::uint32_t> flush_period_ms{0};
  std::string unanswered;
  void called(const char* name);
  void answer();
  std::atomic<std::uint64_t> waiting_calls{0};    // that have not come back
  std::atomic<std::int32_t> calls_of_program{0};  // that are under way

  // The clock: CUPTI's time is this plus kCuptiEpoch.
  static constexpr std::int64_t kCuptiEpoch = 1'700'000'000'000'000'000;
  std::atomic<std::int64_t> clock_jump_ns{0};  // of the system's clock, by which CUPTI goes unless it is given another
  std::atomic<cupti::Timestamp> timestamp{nullptr};  // that it was given
  std::atomic<std::int64_t> timestamp_epoch_ns{0};   // of that one, likewise
  std::int64_t epoch() const { return timestamp.load() ? timestamp_epoch_ns.load() : kCuptiEpoch + clock_jump_ns; }
  std::atomic<std::int64_t> now_ns{1'000'000};
  // With `real_clock` it follows CLOCK_REALTIME, as CUPTI's does, and waiting takes its time.
  std::atomic<bool> real_clock{false};
  bool waits_asleep = false;                    // as with cudaDeviceScheduleBlockingSync; else it spins
  std::atomic<std::int64_t> waiting_ran_ns{0};  // CPU time that threads took in all their waits
  std::int64_t tick(std::int64_t ns);

  // cuInit: loads the tool that CUDA_INJECTION64_PATH names, before any context, as the driver does.
  cuda::Result start();

  // Program side.
  // Owns what the program is handed, until the process ends: a program may use it after it was destroyed.
  template <class T>
  T* keep(std::unique_ptr<T> made) {
    const std::lock_guard lock(mutex);
    kept_.push_back(std::move(made));
    return static_cast<T*>(kept_.back().get());
  }
  FakeContext* context(std::int32_t device = 0);
  bool has_context(std::int32_t device);
  FakeStream* stream(std::uint32_t id, std::int32_t device = 0);
  FakeEvent* event(std::uint32_t id);
  void launch(FakeStream* stream, const char* name, const KernelShape& shape, std::int64_t duration_ns,
              std::uint32_t correlation);
  void copy(FakeStream* stream, cupti::CopyKind kind, cupti::MemoryKind from, cupti::MemoryKind to, std::size_t bytes,
            std::int64_t duration_ns, std::uint32_t correlation);
  void set(FakeStream* stream, std::size_t bytes, std::int64_t duration_ns, std::uint32_t correlation);
  // Waits on the fake clock until the stream (or all, for nullptr) is done, and records the wait.
  void synchronize(FakeStream* stream, cupti::SyncType type, std::uint32_t correlation);
  void overhead(cupti::OverheadKind kind, std::int64_t duration_ns, std::uint32_t correlation);
  void graph_launch(FakeGraph* graph, FakeStream* stream, std::uint32_t correlation);
  FakeGraph* new_graph();
  FakeGraph* instantiate(FakeGraph* graph);
  // Of the records that the tool wants of kernels.
  cupti::Kind kernel_kind() const {
    return kinds.contains(cupti::Kind::kKernel) ? cupti::Kind::kKernel : cupti::Kind::kConcurrentKernel;
  }
  // `inner` becomes a node of `graph`, whose own it is from then on.
  void add_graph(FakeGraph* graph, FakeGraph* inner);
  void destroy(FakeGraph* graph, bool executable);
  void destroy_context(std::int32_t device);
  void lose_device();
  // As the driver tells of code that it loads for a device, and that it lets go of.
  void load_code(const void* image, std::size_t bytes, std::int32_t device);
  void unload_code(std::int32_t device);

  // CUPTI side.
  cupti::Subscriber subscribed = nullptr;
  bool subscribed_shared = false;
  cupti::CallbackFunction callback = nullptr;
  void* callback_user = nullptr;
  std::set<std::pair<cupti::Domain, std::uint32_t>> enabled;
  std::set<cupti::Kind> kinds;
  cupti::BufferRequested requested = nullptr;
  cupti::BufferCompleted completed = nullptr;
  cupti::BufferRequestedV2 requested_v2 = nullptr;
  cupti::BufferCompletedV2 completed_v2 = nullptr;
  std::size_t dropped = 0;
  std::uint32_t finalized = 0;
  bool finalized_inside_call = false;
  std::uint64_t calls_after_finalize = 0;  // CUPTI calls that must not happen
  std::uint64_t noisy_callbacks_enabled = 0;
  std::atomic<std::uint64_t> event_calls{0};  // of the driver's own event functions

  bool is_enabled(cupti::Domain domain, std::uint32_t cbid);
  void enable(cupti::Domain domain, std::uint32_t cbid, bool on);
  void enable_domain(cupti::Domain domain, bool on);
  std::size_t record_size(cupti::Kind kind) const;
  void flush(bool forced);
  std::size_t pending();
  void reset();
  // For programs in other languages: FAKE_HOLDER (a tool's name), FAKE_REFUSES, FAKE_REFUSES_SAMPLING and FAKE_INIT
  // (results of CUPTI's subscription and sampling, and of cuInit), FAKE_DRIVER_CUDA (12040), FAKE_SLEEPS (waits do not
  // spin), and CUDA_VISIBLE_DEVICES when it is empty.
  void read_environment();
  std::recursive_mutex mutex;  // callbacks run outside it

 private:
  friend class ApiScope;
  void append(const void* record, std::size_t known_bytes, cupti::Kind kind, std::uint64_t end);
  void graph_event(cupti::Resource which, FakeGraph* graph, FakeGraphNode* node, FakeGraphNode* original, void* exec);

  std::condition_variable_any answered_;
  std::vector<std::shared_ptr<void>> kept_;
  std::vector<FakeContext*> contexts_;
  std::map<std::pair<std::int32_t, std::uint32_t>, FakeStream*> streams_;
  std::map<std::uint32_t, FakeEvent*> events_;
  std::set<std::string> names_;
  std::deque<std::vector<std::uint8_t>> records_;
  std::uint32_t next_graph_ = 1;
  std::mt19937 random_{7};
  std::atomic<std::uint32_t> next_correlation_{1};
};

// One API call of the program, from begin to end.
class ApiScope {
 public:
  ApiScope(cupti::Domain domain, std::uint32_t cbid, const char* name, const void* params, FakeContext* context,
           const FakeKernel* kernel = nullptr);
  ~ApiScope();
  ApiScope(const ApiScope&) = delete;
  ApiScope& operator=(const ApiScope&) = delete;
  std::uint32_t correlation() const { return data_.correlation_id; }
  std::int32_t done(std::int32_t result) {
    result_ = result;
    return result;
  }
  static bool inside();

 private:
  void tell(cupti::Site site);
  cupti::Domain domain_;
  std::uint32_t cbid_;
  std::int32_t result_ = 0;
  bool told_ = false;
  cupti::CallbackData data_{};
};

// The callback ids of the functions the fakes have; names as the real library gives them.
const char* callback_name(cupti::Domain domain, std::uint32_t cbid);
std::uint32_t callback_id(cupti::Domain domain, const char* name);

}  // namespace leadline::testing
