#include "testing/amd/fake_rocm.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sstream>
#include <thread>
#include <utility>

namespace leadline::testing::rocm {

const char* const kHipCalls[] = {"hipGetLastError",
                                 "hipLaunchKernel",
                                 "hipExtLaunchKernel",
                                 "hipLaunchCooperativeKernel",
                                 "hipModuleLaunchKernel",
                                 "hipLaunchKernelExC",
                                 "hipMemcpyAsync",
                                 "hipMemcpy",
                                 "hipMemsetAsync",
                                 "hipMalloc",
                                 "hipFree",
                                 "hipStreamSynchronize",
                                 "hipDeviceSynchronize",
                                 "hipEventRecord",
                                 "hipEventSynchronize",
                                 "hipStreamWaitEvent",
                                 "hipStreamBeginCapture",
                                 "hipStreamEndCapture",
                                 "hipGraphInstantiate",
                                 "hipGraphLaunch",
                                 "hipGraphDestroy",
                                 "hipGraphExecDestroy",
                                 "hipSetDevice",
                                 "hipGetDeviceCount",
                                 "hipEventQuery",
                                 "hipHostMalloc",
                                 "hipHostFree",
                                 "hipMemcpyPeerAsync",
                                 "hipPointerGetAttributes"};

std::int32_t hip_operations() { return static_cast<std::int32_t>(std::size(kHipCalls)); }

std::int32_t hip_operation(const char* name) {
  for (std::int32_t i = 0; i < hip_operations(); ++i) {
    if (std::strcmp(kHipCalls[i], name) == 0) return i;
  }
  return -1;
}

FakeRocm& FakeRocm::instance() {
  static FakeRocm& made = *[] {
    auto* rocm = new FakeRocm;
    rocm->reset();
    rocm->read_environment();
    return rocm;
  }();
  return made;
}

void FakeRocm::read_environment() {
  blind = std::getenv("FAKE_BLIND") != nullptr;
  refuses = std::getenv("FAKE_REFUSES") != nullptr;
  read_counters_of_environment();
  if (const char* version = std::getenv("FAKE_SDK")) sdk_version = static_cast<std::uint32_t>(std::atoi(version));
  if (const char* count = std::getenv("FAKE_DEVICES"))
    devices.resize(static_cast<std::size_t>(std::atoi(count)), devices.front());
  if (const char* told = std::getenv("FAKE_SAMPLES")) {
    std::istringstream all(told);
    for (std::string one; all >> one;) {
      std::replace(one.begin(), one.end(), ',', ' ');
      std::istringstream words(one);
      Sampled made;
      words >> made.kernel >> made.offset >> made.reason >> made.count;
      sampled.push_back(made);
    }
  }
  if (const char* how = std::getenv("FAKE_SAMPLING")) {
    if (std::strcmp(how, "host-trap") == 0) {
      sampling_method = sdk::SamplingMethod::kHostTrap;
    } else {
      sampling_status = std::atoi(how);
    }
  }
  const char* architecture = std::getenv("FAKE_ARCH");
  if (architecture && std::strcmp(architecture, "gfx1100") == 0) {
    for (Device& device : devices) {
      device = {"gfx1100", "AMD Radeon RX 7900 XTX (fake)", 110000, 96, 32, 16, 2, 0xc1, 24ull << 30};
    }
  }
}

// Devices of a card share its place on the bus.
void FakeRocm::reset() {
  const std::lock_guard lock(mutex);
  sdk_version = 10000;
  devices.assign(1, Device{});
  delivery = {};
  blind = refuses = unasked = real_clock = false;
  scratch_sizes = true;
  now_ns = 1'000'000;
  traced_.clear();
  for (auto& [key, stream] : streams_) *stream = Stream{stream->id, stream->device, 0, nullptr};
  records_.clear();
}

std::int64_t FakeRocm::tick(std::int64_t ns) {
  if (!real_clock) return now_ns.fetch_add(ns, std::memory_order_relaxed) + ns;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t real = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  now_ns.store(real, std::memory_order_relaxed);
  return real;
}

namespace {

std::string folder_of_fakes() {
  Dl_info here{};
  ::dladdr(reinterpret_cast<void*>(&FakeRocm::instance), &here);
  return std::string(here.dli_fname).substr(0, std::string(here.dli_fname).rfind('/'));
}

}  // namespace

// As rocprofiler-register does: HIP hands its tables to the SDK if any tool is named.
void FakeRocm::start_hip() {
  if (hip_started.exchange(true)) return;
  load_hsa_tools();
  if (::access((folder_of_fakes() + "/librocprofiler-sdk.so.1").c_str(), R_OK) != 0) return;  // an older ROCm
  const char* named = std::getenv("ROCP_TOOL_LIBRARIES");
  if (!named || !*named || initialized != 0) return;
  std::string list = named;
  // The real parser leaves out what stands behind the last colon of several.
  if (list.find(':') == std::string::npos) list += ':';
  for (std::size_t at = 0, end = 0; (end = list.find(':', at)) != std::string::npos; at = end + 1) {
    void* tool = ::dlopen(list.substr(at, end - at).c_str(), RTLD_NOW);
    if (!tool) std::abort();  // as the real one does
    ::dlopen((folder_of_fakes() + "/librocprofiler-sdk.so.1").c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (auto* entry = reinterpret_cast<sdk::Configure>(::dlsym(tool, "rocprofiler_configure"))) configure(entry);
  }
}

int FakeRocm::configure(sdk::Configure entry) {
  initialized = -1;
  sdk::ClientId client{sizeof(sdk::ClientId), nullptr, 7};
  sdk::OldClientId old_client{nullptr, 7};
  const bool is_old = sdk_version < 10000;
  const sdk::ToolConfiguration* const tool =
      entry(sdk_version, "fake", 0, is_old ? reinterpret_cast<sdk::ClientId*>(&old_client) : &client);
  const char* name = is_old ? old_client.name : client.name;
  if (tool && !name) std::abort();  // every tool has said who it is
  int result = 1;
  if (tool && tool->initialize) result = tool->initialize(nullptr, tool->data);
  if (tool) tools_.push_back(tool);
  initialized = 1;
  return result;
}

void FakeRocm::finalize() {
  active = false;
  for (const sdk::ToolConfiguration* tool : tools_) {
    if (tool->finalize) tool->finalize(tool->data);
  }
}

Stream* FakeRocm::stream(std::uint32_t id, std::int32_t device) {
  Stream* made = nullptr;
  {
    const std::lock_guard lock(mutex);
    Stream*& found = streams_[{device, id}];
    if (found) return found;
    made = found = keep(std::make_unique<Stream>(Stream{id, device, 0, nullptr}));
  }
  if (kind_stream() > 0) {
    sdk::StreamCall call{sizeof(sdk::StreamCall), id, reinterpret_cast<std::uint64_t>(made)};
    tell(kind_stream(), 1, sdk::Phase::kNone, &call);
  }
  return made;
}

Event* FakeRocm::event(std::uint32_t id) {
  const std::lock_guard lock(mutex);
  Event*& found = events_[id];
  if (!found) found = keep(std::make_unique<Event>());
  return found;
}

Graph* FakeRocm::new_graph() {
  const std::lock_guard lock(mutex);
  return keep(std::make_unique<Graph>());
}

void FakeRocm::tell(std::int32_t kind, std::int32_t operation, sdk::Phase phase, void* payload) {
  Service service;
  {
    const std::lock_guard lock(mutex);
    const auto found = callbacks.find(kind);
    if (!active || found == callbacks.end()) return;
    service = found->second;
  }
  if (!service.operations.empty() && !service.operations.contains(operation)) return;
  sdk::UserData user{};
  if (sdk_version >= 10000) {
    const sdk::CallbackRecord record{1, 2, 3, {}, 0, kind, operation, phase, payload};
    service.callback(record, &user, service.data);
  } else {
    const sdk::OldCallbackRecord record{1, 2, 3, {}, kind, operation, phase, payload};
    reinterpret_cast<void (*)(sdk::OldCallbackRecord, sdk::UserData*, void*)>(
        reinterpret_cast<void*>(service.callback))(record, &user, service.data);
  }
}

// Kernels are known to the tool when their code is loaded: here at their first launch.
std::uint64_t FakeRocm::kernel_id(const Kernel& kernel) {
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(mutex);
    auto [found, is_new] = kernels_.try_emplace(kernel.name, kernels_.size() + 1);
    id = found->second;
    if (!is_new) return id;
  }
  // All kernels are of one code object, four kilobytes each.
  static const char code[] = "machine code of the fake";
  constexpr std::uint64_t kBase = 0x7000'0000;
  if (id == 1) {
    sdk::CodeObjectLoad load{};
    load.size = sizeof load;
    load.code_object = 1;
    load.agent = 100;
    load.load_base = kBase;
    load.storage = sdk::kInMemory;
    load.memory = {reinterpret_cast<std::uint64_t>(code), sizeof code};
    tell(kind_code(), sdk::kCodeObjectLoad, sdk::Phase::kEnter, &load);
  }
  const std::string name = std::string(kernel.name) + ".kd";
  sdk::PlacedKernelSymbol placed{};
  sdk::KernelSymbol& symbol = placed.symbol;
  symbol.size = sdk_version >= 10000 ? sizeof placed
                : sdk_version >= 500 ? sizeof symbol
                                     : offsetof(sdk::KernelSymbol, sgprs);
  symbol.code_object = 1;
  placed.address = kBase + 0x1000 * id;
  symbol.kernel = id;
  symbol.name = name.c_str();
  symbol.group_segment = static_cast<std::uint32_t>(kernel.static_lds);
  symbol.sgprs = static_cast<std::uint32_t>(kernel.sgprs);
  symbol.arch_vgprs = static_cast<std::uint32_t>(kernel.vgprs);
  symbol.accum_vgprs = static_cast<std::uint32_t>(kernel.agprs);
  tell(kind_code(), 2, sdk::Phase::kEnter, &placed);
  return id;
}

std::uint64_t FakeRocm::ask(std::int32_t kind) {
  sdk::UserData external{};
  if (request && active && !unasked) request(1, {1}, kind, 2, correlations_++, &external, nullptr);
  return unasked ? 0xfffff0000123u : external.value;
}

std::uint64_t FakeRocm::next_dispatch() {
  const std::lock_guard lock(mutex);
  return dispatches_ + 1;
}

void FakeRocm::launch(Stream* stream, const Kernel& kernel, sdk::Dim3 blocks, sdk::Dim3 threads, std::uint32_t lds) {
  if (stream->capturing) {
    const std::lock_guard lock(mutex);
    stream->capturing->nodes.push_back({kernel});
    return;
  }
  const std::uint64_t id = kernel_id(kernel);
  constexpr std::int64_t kLatency = 500;
  const bool seen = active && buffered.contains(11) && !blind;
  const std::uint64_t external = seen ? ask(11) : 0;
  const std::uint64_t next = next_dispatch();
  const std::uint64_t counting = wanted_counters(100 + static_cast<std::uint64_t>(stream->device), next);
  const std::lock_guard lock(mutex);
  std::int64_t start = std::max(tick(0) + kLatency, stream->ready_ns);
  if (kernel.scratch > stream->scratch) {
    const Device& device = devices[static_cast<std::size_t>(stream->device)];
    const std::uint64_t threads = std::uint64_t{device.compute_units} * device.simds * device.max_waves * device.wave;
    stream->scratch = kernel.scratch;
    if (seen)
      keep_scratch(*stream, sdk::ScratchOperation::kAllocate, start,
                   threads * static_cast<std::uint64_t>(kernel.scratch));
    start += kScratchNs;  // the queue waits for it
  }
  stream->ready_ns = start + kernel.duration_ns;
  if (sampling_on) sample(kernel, external);
  keep_traced(tracer::Operation::kDispatch, 0, *stream, start, 0, kernel.name);
  if (!seen) return;
  sdk::DispatchRecord record{};
  record.size = sizeof record;
  record.kind = 11;
  record.operation = 2;
  record.correlation_internal = correlations_;
  record.correlation_external.value = external;
  record.start = static_cast<std::uint64_t>(start + kEpoch);
  record.end = static_cast<std::uint64_t>(stream->ready_ns + kEpoch);
  record.info.size = 72;
  record.info.agent = 100 + static_cast<std::uint64_t>(stream->device);
  record.info.queue = stream->id;
  record.info.kernel = id;
  record.info.dispatch = ++dispatches_;
  record.info.private_segment = static_cast<std::uint32_t>(kernel.scratch);
  record.info.group_segment = static_cast<std::uint32_t>(kernel.static_lds) + lds;
  record.info.workgroup = threads;
  record.info.grid = {blocks.x * threads.x, blocks.y * threads.y, blocks.z * threads.z};
  if (counting != 0) count(kernel, counting, record);
  Record kept{11, std::vector<std::uint8_t>(sizeof record)};
  std::memcpy(kept.bytes.data(), &record, sizeof record);
  records_.push_back(std::move(kept));
}

void FakeRocm::copy(Stream* stream, sdk::CopyOperation operation, std::size_t bytes, std::int64_t duration_ns,
                    std::int32_t to_device) {
  const bool seen = active && buffered.contains(10) && !blind;
  const std::uint64_t external = seen ? ask(10) : 0;
  const std::lock_guard lock(mutex);
  const std::int64_t start = std::max(tick(0) + 500, stream->ready_ns);
  stream->ready_ns = start + duration_ns;
  keep_traced(tracer::Operation::kCopy, static_cast<std::uint32_t>(operation), *stream, start, bytes, nullptr);
  if (!seen) return;
  const std::uint64_t gpu = 100 + static_cast<std::uint64_t>(stream->device);
  sdk::CopyRecord record{};
  record.size = sizeof record;
  record.kind = 10;
  record.operation = operation;
  record.correlation_external.value = external;
  record.start = static_cast<std::uint64_t>(start + kEpoch);
  record.end = static_cast<std::uint64_t>(stream->ready_ns + kEpoch);
  constexpr std::uint64_t kCpu = 1;
  record.source_agent = operation == sdk::CopyOperation::kHostToDevice ? kCpu : gpu;
  record.destination_agent = operation == sdk::CopyOperation::kDeviceToHost ? kCpu : gpu;
  if (to_device >= 0) record.destination_agent = 100 + static_cast<std::uint64_t>(to_device);
  record.bytes = bytes;
  Record kept{10, std::vector<std::uint8_t>(sizeof record)};
  std::memcpy(kept.bytes.data(), &record, sizeof record);
  records_.push_back(std::move(kept));
}

void FakeRocm::replay(Graph* graph, Stream* stream) {
  const std::int64_t before = now_ns;
  for (const Node& node : graph->nodes) launch(stream, node.kernel, {1, 1, 1}, {32, 1, 1}, 0);
  static_cast<void>(before);
}

void FakeRocm::synchronize(Stream* stream) {
  const std::lock_guard lock(mutex);
  std::int64_t until = tick(0);
  for (const auto& [key, each] : streams_) {
    if (!stream || each == stream) until = std::max(until, each->ready_ns);
  }
  while (real_clock && tick(0) < until) {
  }
  std::int64_t now = now_ns.load();
  while (now < until && !now_ns.compare_exchange_weak(now, until)) {
  }
}

void FakeRocm::flush() {
  std::vector<Record> out;
  std::uint64_t lost = 0;
  {
    const std::lock_guard lock(mutex);
    while (delivery.drop > 0 && !records_.empty()) {
      records_.pop_front();
      --delivery.drop;
      ++lost;
    }
    const std::size_t keep = std::min(std::exchange(delivery.hold_back, 0), records_.size());
    const auto count = static_cast<std::ptrdiff_t>(records_.size() - keep);
    out.assign(records_.begin(), records_.begin() + count);
    records_.erase(records_.begin(), records_.begin() + count);
    if (delivery.order == Delivery::Order::kReversed) std::reverse(out.begin(), out.end());
    if (delivery.order == Delivery::Order::kShuffled) std::shuffle(out.begin(), out.end(), random_);
  }
  if (!buffer_callback || (out.empty() && lost == 0)) return;
  std::thread([&] {
    for (std::size_t at = 0; at < out.size() || lost > 0;) {
      std::vector<sdk::RecordHeader> headers;
      for (std::size_t n = 0; n < delivery.records_per_buffer && at < out.size(); ++n, ++at) {
        headers.push_back({sdk::Category::kTracing, out[at].kind, out[at].bytes.data()});
      }
      std::vector<sdk::RecordHeader*> pointers;
      for (sdk::RecordHeader& header : headers) pointers.push_back(&header);
      buffer_callback({2}, {1}, pointers.data(), pointers.size(), nullptr, std::exchange(lost, 0));
    }
  }).join();
}

}  // namespace leadline::testing::rocm

extern "C" leadline::testing::rocm::FakeRocm* fake_rocm() { return &leadline::testing::rocm::FakeRocm::instance(); }
