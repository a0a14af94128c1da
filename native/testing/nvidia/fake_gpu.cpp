#include "testing/nvidia/fake_gpu.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <utility>

namespace leadline::testing {
namespace {

std::int64_t thread_cpu() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

}  // namespace

FakeGpu& FakeGpu::instance() {
  static FakeGpu& gpu = *[] {
    auto* made = new FakeGpu;
    made->reset();
    made->read_environment();
    return made;
  }();
  return gpu;
}

std::int64_t FakeGpu::tick(std::int64_t ns) {
  if (!real_clock) return now_ns.fetch_add(ns, std::memory_order_relaxed) + ns;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::int64_t real = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec - kCuptiEpoch;
  now_ns.store(real, std::memory_order_relaxed);
  return real;
}

void FakeGpu::called(const char* name) {
  std::unique_lock lock(mutex);
  if (const auto cost = costs.find(name); cost != costs.end()) {
    const auto takes = cost->second;
    lock.unlock();
    std::this_thread::sleep_for(takes);
    lock.lock();
  }
  if (unanswered != name) return;
  ++waiting_calls;
  answered_.wait(lock, [&] { return unanswered != name; });
  --waiting_calls;
}

void FakeGpu::answer() {
  const std::lock_guard lock(mutex);
  unanswered.clear();
  answered_.notify_all();
}

cuda::Result FakeGpu::start() {
  if (init_result != cuda::kSuccess) return init_result;
  if (started.load()) return cuda::kSuccess;
  if (const char* tool = std::getenv("CUDA_INJECTION64_PATH")) {
    if (void* library = ::dlopen(tool, RTLD_NOW)) {
      if (auto* initialize = reinterpret_cast<int (*)()>(::dlsym(library, "InitializeInjection"))) initialize();
    }
  }
  started.store(true);
  return cuda::kSuccess;
}

FakeContext* FakeGpu::context(std::int32_t device) {
  FakeContext* made = nullptr;
  {
    const std::lock_guard lock(mutex);
    while (contexts_.size() <= static_cast<std::size_t>(device)) contexts_.push_back(nullptr);
    FakeContext*& found = contexts_[static_cast<std::size_t>(device)];
    if (found) return found;
    made = found = keep(std::make_unique<FakeContext>(FakeContext{static_cast<std::uint32_t>(device) + 1, device}));
  }
  const auto which = static_cast<std::uint32_t>(cupti::Resource::kContextCreated);
  if (is_enabled(cupti::Domain::kResource, which)) {
    const cupti::ResourceData resource{made, nullptr, nullptr};
    callback(callback_user, cupti::Domain::kResource, which, &resource);
  }
  return made;
}

bool FakeGpu::has_context(std::int32_t device) {
  const std::lock_guard lock(mutex);
  return static_cast<std::size_t>(device) < contexts_.size() && contexts_[static_cast<std::size_t>(device)] != nullptr;
}

FakeStream* FakeGpu::stream(std::uint32_t id, std::int32_t device) {
  const std::lock_guard lock(mutex);
  FakeStream*& found = streams_[{device, id}];
  if (!found) found = keep(std::make_unique<FakeStream>(FakeStream{id, device, 0, nullptr}));
  return found;
}

FakeEvent* FakeGpu::event(std::uint32_t id) {
  const std::lock_guard lock(mutex);
  FakeEvent*& found = events_[id];
  if (!found) found = keep(std::make_unique<FakeEvent>());
  return found;
}

bool FakeGpu::is_enabled(cupti::Domain domain, std::uint32_t cbid) {
  const std::lock_guard lock(mutex);
  return callback && enabled.contains({domain, cbid});
}

void FakeGpu::enable(cupti::Domain domain, std::uint32_t cbid, bool on) {
  const std::lock_guard lock(mutex);
  const bool api = domain == cupti::Domain::kDriver || domain == cupti::Domain::kRuntime;
  const std::string name = api && callback_name(domain, cbid) ? callback_name(domain, cbid) : "";
  if (on &&
      (name.find("GetLastError") != std::string::npos || name == "cuCtxGetCurrent" || name == "functionOfNoInterest")) {
    ++noisy_callbacks_enabled;
  }
  on ? static_cast<void>(enabled.insert({domain, cbid})) : static_cast<void>(enabled.erase({domain, cbid}));
}

void FakeGpu::enable_domain(cupti::Domain domain, bool on) {
  const std::lock_guard lock(mutex);
  if (on) return;
  std::erase_if(enabled, [&](const auto& entry) { return entry.first == domain; });
}

// As in the headers of each release: CUPTI appends fields, so only sizes differ.
std::size_t FakeGpu::record_size(cupti::Kind kind) const {
  switch (kind) {
    case cupti::Kind::kKernel:
    case cupti::Kind::kConcurrentKernel:
      if (cupti_version >= 130400) return 248;
      if (cupti_version >= 130300) return 232;
      if (cupti_version >= 130100) return 224;
      return cupti_version >= 130000 ? 216 : 208;
    case cupti::Kind::kMemcpy:
      if (cupti_version >= 130400) return 112;
      return cupti_version >= cupti::kVersion12_8 ? 96 : 88;
    case cupti::Kind::kMemcpyPeer:
      return 96;
    case cupti::Kind::kMemset:
      return cupti_version >= 130400 ? 104 : 88;
    case cupti::Kind::kSynchronization:
      return cupti_version >= cupti::kVersion12_8 ? 56 : 40;
    case cupti::Kind::kOverhead:
      return cupti_version >= cupti::kVersion12_4 ? 56 : 40;
    case cupti::Kind::kGraphTrace:
      return cupti_version >= cupti::kVersion12_4 ? 56 : 48;
    default:
      return 8;
  }
}

void FakeGpu::append(const void* record, std::size_t known_bytes, cupti::Kind kind, std::uint64_t end) {
  if (!kinds.contains(kind)) return;
  std::vector<std::uint8_t> bytes(record_size(kind), 0xee);  // what we do not know is not zero
  std::memcpy(bytes.data(), record, std::min(known_bytes, bytes.size()));
  if (delivery.per_thread) return buffers.append(bytes, static_cast<std::int64_t>(end) - epoch());
  records_.push_back(std::move(bytes));
}

void FakeGpu::launch(FakeStream* stream, const char* name, const KernelShape& shape, std::int64_t duration_ns,
                     std::uint32_t correlation) {
  const std::lock_guard lock(mutex);
  if (stream->capturing) {
    FakeGraph& graph = *stream->capturing;
    const std::uint64_t id = std::uint64_t{graph.id} << 32 | graph.nodes.size();
    auto* node = keep(std::make_unique<FakeGraphNode>(FakeGraphNode{id, name, duration_ns}));
    graph.nodes.push_back(node);
    graph_event(cupti::Resource::kGraphNodeCreated, &graph, node, nullptr, nullptr);
    return;
  }
  if (loads_ns > 0) overhead(cupti::OverheadKind::kModuleLoading, std::exchange(loads_ns, 0), correlation);
  constexpr std::int64_t kLatency = 500;
  cupti::KernelRecord record{};
  record.kind = kernel_kind();
  const std::int64_t start = std::max(tick(0) + kLatency, stream->ready_ns);
  sampling.ran(context(stream->device), name, correlation);
  stream->ready_ns = start + sampling.duration(context(stream->device), duration_ns);
  const bool is_replayed = counting.replays(context(stream->device));
  now_ns += counting.ran(stream->device, name, start, stream->ready_ns, context(stream->device));
  if (is_replayed && !counting.records_of_replayed) return;  // as on an H100 with CUPTI 13.0
  record.start = static_cast<std::uint64_t>(start + epoch());
  record.end = static_cast<std::uint64_t>(stream->ready_ns + epoch());
  record.device_id = static_cast<std::uint32_t>(stream->device);
  record.context_id = context(stream->device)->id;
  record.stream_id = stream->id;
  record.grid[0] = shape.grid;
  record.grid[1] = record.grid[2] = 1;
  record.block[0] = shape.block;
  record.block[1] = record.block[2] = 1;
  record.registers_per_thread = shape.registers;
  record.static_shared = shape.static_shared;
  record.dynamic_shared = shape.dynamic_shared;
  record.correlation_id = correlation;
  record.name = names_.insert(name).first->c_str();
  if (keeps_truth) truth.emplace_back(start, stream->ready_ns);
  append(&record, sizeof record, record.kind, record.end);
}

void FakeGpu::copy(FakeStream* stream, cupti::CopyKind kind, cupti::MemoryKind from, cupti::MemoryKind to,
                   std::size_t bytes, std::int64_t duration_ns, std::uint32_t correlation) {
  if (bytes == 0) return;  // nothing runs
  const std::lock_guard lock(mutex);
  cupti::MemcpyRecord record{};
  record.kind = cupti::Kind::kMemcpy;
  record.copy_kind = static_cast<std::uint8_t>(kind);
  record.source_kind = static_cast<std::uint8_t>(from);
  record.destination_kind = static_cast<std::uint8_t>(to);
  record.bytes = bytes;
  const std::int64_t start = std::max(tick(0) + 500, stream->ready_ns);
  stream->ready_ns = start + duration_ns;
  record.start = static_cast<std::uint64_t>(start + epoch());
  record.end = static_cast<std::uint64_t>(stream->ready_ns + epoch());
  record.device_id = static_cast<std::uint32_t>(stream->device);
  record.context_id = context(stream->device)->id;
  record.stream_id = stream->id;
  record.correlation_id = correlation;
  append(&record, sizeof record, record.kind, record.end);
}

void FakeGpu::set(FakeStream* stream, std::size_t bytes, std::int64_t duration_ns, std::uint32_t correlation) {
  if (bytes == 0) return;  // nothing runs
  const std::lock_guard lock(mutex);
  cupti::MemsetRecord record{};
  record.kind = cupti::Kind::kMemset;
  record.bytes = bytes;
  const std::int64_t start = std::max(tick(0) + 500, stream->ready_ns);
  stream->ready_ns = start + duration_ns;
  record.start = static_cast<std::uint64_t>(start + epoch());
  record.end = static_cast<std::uint64_t>(stream->ready_ns + epoch());
  record.device_id = static_cast<std::uint32_t>(stream->device);
  record.context_id = context(stream->device)->id;
  record.stream_id = stream->id;
  record.correlation_id = correlation;
  record.memory_kind = static_cast<std::uint16_t>(cupti::MemoryKind::kDevice);
  append(&record, sizeof record, record.kind, record.end);
}

void FakeGpu::synchronize(FakeStream* stream, cupti::SyncType type, std::uint32_t correlation) {
  const std::lock_guard lock(mutex);
  const std::int64_t begin = tick(0);
  std::int64_t until = begin;
  for (const auto& [key, each] : streams_) {
    if (!stream || each == stream) until = std::max(until, each->ready_ns);
  }
  const std::int64_t ran_before = thread_cpu();
  while (real_clock && tick(0) < until) {
    if (!waits_asleep) continue;
    const timespec rest{0, std::min<std::int64_t>(until - now_ns.load(), 999'999'999)};
    if (rest.tv_nsec > 0) ::nanosleep(&rest, nullptr);
  }
  waiting_ran_ns += thread_cpu() - ran_before;
  std::int64_t now = now_ns.load();
  while (now < until && !now_ns.compare_exchange_weak(now, until)) {
  }
  cupti::SynchronizationRecord record{};
  record.kind = cupti::Kind::kSynchronization;
  record.type = type;
  record.start = static_cast<std::uint64_t>(begin + epoch());
  record.end = static_cast<std::uint64_t>(until + epoch());
  record.correlation_id = correlation;
  record.stream_id = stream ? stream->id : 0xffffffffu;
  append(&record, sizeof record, record.kind, record.end);
}

void FakeGpu::destroy_context(std::int32_t device) {
  FakeContext* gone = context(device);
  const auto which = static_cast<std::uint32_t>(cupti::Resource::kContextDestroyStarting);
  if (is_enabled(cupti::Domain::kResource, which)) {
    const cupti::ResourceData resource{gone, nullptr, nullptr};
    callback(callback_user, cupti::Domain::kResource, which, &resource);
  }
}

void FakeGpu::lose_device() {
  if (is_enabled(cupti::Domain::kState, 1)) {
    const struct {
      cupti::Result result;
      const char* message;
    } state{cupti::kUnknown, "the fake device fell off the bus"};
    callback(callback_user, cupti::Domain::kState, 1, &state);
  }
  const std::lock_guard lock(mutex);
  callback = nullptr;
  records_.clear();
}

std::size_t FakeGpu::pending() {
  const std::lock_guard lock(mutex);
  return records_.size() + buffers.pending();
}

void FakeGpu::flush(bool forced) {
  std::vector<std::vector<std::uint8_t>> out;
  {
    const std::lock_guard lock(mutex);
    if (delivery.per_thread) return buffers.flush(forced);
    while (delivery.drop > 0 && !records_.empty()) {
      records_.pop_front();
      --delivery.drop;
      ++dropped;
    }
    const std::size_t keep = forced ? 0 : std::min(delivery.hold_back, records_.size());
    const std::size_t count = records_.size() - keep;
    out.assign(records_.begin(), records_.begin() + static_cast<std::ptrdiff_t>(count));
    records_.erase(records_.begin(), records_.begin() + static_cast<std::ptrdiff_t>(count));
    if (delivery.order == Delivery::Order::kReversed) std::reverse(out.begin(), out.end());
    if (delivery.order == Delivery::Order::kShuffled) std::shuffle(out.begin(), out.end(), random_);
  }
  for (std::size_t at = 0; at < out.size();) {
    std::uint8_t* buffer = nullptr;
    std::size_t size = 0;
    std::size_t most = 0;
    if (requested_v2) {
      requested_v2(&buffer, &size, &most, nullptr);
    } else if (requested) {
      requested(&buffer, &size, &most);
    }
    if (!buffer) {
      const std::lock_guard lock(mutex);
      dropped += out.size() - at;
      return;
    }
    std::size_t used = 0;
    for (std::size_t n = 0; n < delivery.records_per_buffer && at < out.size() && used + out[at].size() <= size;
         ++n, ++at) {
      std::memcpy(buffer + used, out[at].data(), out[at].size());
      used += out[at].size();
    }
    if (completed_v2) {
      completed_v2(buffer, size, used, nullptr);
    } else {
      completed(nullptr, 0, buffer, size, used);
    }
  }
}

}  // namespace leadline::testing
