#include "backends/sanitizer/backend.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "base/own_thread.h"
#include "gpu/in_callback.h"

namespace leadline::sanitizer {
namespace {

using InCallback = gpu::InCallback<Backend>;

constexpr std::size_t kLaunchRows = std::size_t{1} << 16;
constexpr std::int32_t kCuda = 1;  // leadline_memory_event::device_type

// What our own calls make the library tell is nobody's.
thread_local bool inside = false;

std::uint32_t this_thread() noexcept {
  thread_local const auto tid = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  return tid;
}

}  // namespace

Backend::Backend(Options options)
    : options_(std::move(options)), objects_(device::kMostRanges), launches_(kLaunchRows), process_(::getpid()) {}

Backend::~Backend() {
  stop();
  for (auto& context : contexts_) delete context.load();
}

std::string Backend::start() {
  std::string error;
  selection_ = std::make_unique<Selection>(options_.wanted, &error);
  if (!error.empty()) return error;
  library_ = SanitizerLibrary::open(options_.candidates, &error);
  if (!library_) return error;
  const bool with_pc = (options_.shape.want & device::kWantInstructions) != 0;
  code_ = std::make_unique<KnownCode>(*library_, *selection_, options_.image, options_.patches, with_pc);
  InCallback::use(this);
  const abi::Functions& f = library_->functions();
  const abi::Result subscribed = f.subscribe(&subscriber_, on_callback, nullptr);
  if (subscribed != abi::kSuccess) {
    InCallback::forget(this);
    subscriber_ = nullptr;
    if (subscribed == abi::kMaxLimitReached) {
      return "another tool in this process has subscribed to the Compute Sanitizer, which takes one only";
    }
    return "the Compute Sanitizer takes no subscriber: " + library_->words(subscribed);
  }
  if (leadline_monitor_register(LEADLINE_DOMAIN_MEMORY, on_memory, this, &memory_) != LEADLINE_OK) memory_ = 0;
  measuring_.store(true, std::memory_order_release);
  for (const abi::Domain domain : {abi::Domain::kResource, abi::Domain::kLaunch, abi::Domain::kGraphs}) {
    const abi::Result enabled = f.enable_domain(1, subscriber_, domain);
    if (enabled == abi::kSuccess) continue;
    stop(std::chrono::milliseconds(0));
    return "the Compute Sanitizer reports no launches: " + library_->words(enabled);
  }
  worker_ = own_thread([this] { work(); });
  return "";
}

void Backend::stop(std::chrono::milliseconds patience) noexcept {
  if (::getpid() != process_) {  // a forked child: neither our threads nor the device are here
    InCallback::after_fork();
    if (worker_.joinable()) worker_.detach();
    for (auto& context : contexts_) context.store(nullptr);
    subscriber_ = nullptr;
    memory_ = 0;
    return;
  }
  if (subscriber_ == nullptr) return;
  measuring_.store(false, std::memory_order_release);
  if (memory_ != 0) leadline_monitor_unregister(memory_);
  memory_ = 0;
  const auto until = std::chrono::steady_clock::now() + patience;
  while (under_way() > 0 && std::chrono::steady_clock::now() < until) {
    harvest();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  harvest();
  ends_.store(true, std::memory_order_release);
  if (worker_.joinable()) worker_.join();
  const abi::Functions& f = library_->functions();
  for (const abi::Domain domain : {abi::Domain::kLaunch, abi::Domain::kGraphs, abi::Domain::kResource}) {
    f.enable_domain(0, subscriber_, domain);
  }
  const bool quiet = InCallback::wait(std::chrono::milliseconds(1000));
  const bool all_done = under_way() == 0 && quiet;
  // Patched code that still runs needs its text and its trackers, so then everything stays where it is.
  if (all_done) code_->unpatch_all();
  f.unsubscribe(subscriber_);
  subscriber_ = nullptr;
  InCallback::forget(this);
  InCallback::wait(std::chrono::milliseconds(1000));
  for (auto& one : contexts_) {
    Trackers* const trackers = one.load(std::memory_order_acquire);
    if (trackers == nullptr || trackers->gone()) continue;
    if (all_done) {
      trackers->free_all();
    } else {
      trackers->abandon(Lost::kAtStop);
    }
  }
}

void Backend::wait(std::int64_t timeout_ns) noexcept {
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout_ns);
  while (std::chrono::steady_clock::now() < until && launches_.waiting() < kLaunchRows / 2 &&
         out_.touched.waiting() < (std::size_t{1} << 16)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::size_t Backend::under_way() noexcept {
  std::size_t count = 0;
  for (const auto& one : contexts_) {
    const Trackers* const trackers = one.load(std::memory_order_acquire);
    if (trackers != nullptr && !trackers->gone()) count += trackers->under_way();
  }
  return count;
}

// Looks for launches that are complete: often while some are under way, else seldom.
void Backend::work() noexcept {
  while (!ends_.load(std::memory_order_acquire)) {
    const bool busy = under_way() > 0;
    if (busy) harvest();
    std::this_thread::sleep_for(std::chrono::microseconds(busy ? 100 : 1000));
  }
}

void Backend::harvest() noexcept {
  if (!harvest_lock_.try_lock()) return;
  for (const auto& one : contexts_) {
    Trackers* const trackers = one.load(std::memory_order_acquire);
    if (trackers != nullptr) trackers->harvest();
  }
  harvest_lock_.unlock();
}

void Backend::on_callback(void*, abi::Domain domain, std::uint32_t id, const void* data) noexcept {
  if (inside) return;
  const InCallback callback;
  if (!callback || !callback->measuring_.load(std::memory_order_acquire)) return;
  inside = true;
  if (domain == abi::Domain::kResource) {
    callback->resource(static_cast<abi::Resource>(id), data);
  } else if (domain == abi::Domain::kLaunch && id == static_cast<std::uint32_t>(abi::Launch::kBegin)) {
    const auto& launch = *static_cast<const abi::LaunchData*>(data);
    callback->launch(launch, launch.stream_handle, 0);
  } else if (domain == abi::Domain::kGraphs && id == static_cast<std::uint32_t>(abi::Graphs::kNodeLaunchBegin)) {
    const auto& node = *static_cast<const abi::GraphNodeData*>(data);
    // The nodes of one launch of a graph may run side by side; what is queued for them goes before the graph.
    const std::uint64_t group = reinterpret_cast<std::uintptr_t>(node.graph_exec) * 31 + node.launch_id + 1;
    if (node.node_type == abi::kGraphNodeKernel && node.is_upload == 0) {
      callback->launch(node.launch, node.launch.api_stream_handle, group);
    }
  }
  inside = false;
}

void Backend::on_memory(const leadline_event* event, void* user) noexcept {
  auto& backend = *static_cast<Backend*>(user);
  const leadline_memory_event& memory = event->of.memory;
  if (memory.device_type != kCuda) return;
  if (memory.bytes > 0) {
    backend.objects_.allocated(memory.address, static_cast<std::uint64_t>(memory.bytes), memory.device,
                               leadline_monitor_context(), backend.launched_.load(std::memory_order_relaxed), true);
  } else {
    backend.objects_.freed(memory.address, true);
  }
}

void Backend::resource(abi::Resource id, const void* data) noexcept {
  switch (id) {
    case abi::Resource::kMemoryAlloc:
    case abi::Resource::kMemoryAllocAsync: {
      const auto& memory = *static_cast<const abi::MemoryData*>(data);
      objects_.allocated(memory.address, memory.size, memory.device, leadline_monitor_context(),
                         launched_.load(std::memory_order_relaxed), false);
      break;
    }
    case abi::Resource::kMemoryFree:
    case abi::Resource::kMemoryFreeAsync:
      objects_.freed(static_cast<const abi::MemoryData*>(data)->address, false);
      break;
    case abi::Resource::kModuleUnloadStarting:
      code_->unloaded(static_cast<const abi::ModuleData*>(data)->module);
      break;
    case abi::Resource::kContextDestroyStarting: {
      abi::Context const context = *static_cast<abi::Context const*>(data);  // the first field, in all releases
      for (auto& one : contexts_) {
        Trackers* const trackers = one.load(std::memory_order_acquire);
        if (trackers == nullptr || trackers->context() != context || trackers->gone()) continue;
        const std::lock_guard lock(harvest_lock_);
        trackers->harvest();
        trackers->abandon(Lost::kContextGone);
      }
      code_->context_gone(context);
      break;
    }
    default:
      break;
  }
}

Trackers* Backend::trackers_of(abi::Context context) noexcept {
  for (const auto& one : contexts_) {
    Trackers* const known = one.load(std::memory_order_acquire);
    if (known != nullptr && known->context() == context && !known->gone()) return known;
  }
  try {
    auto made = std::make_unique<Trackers>(library_->functions(), context, options_.shape, objects_, out_, lost_);
    const std::lock_guard lock(contexts_lock_);
    for (auto& one : contexts_) {
      Trackers* const known = one.load(std::memory_order_acquire);
      if (known != nullptr && known->context() == context && !known->gone()) return known;
      if (known != nullptr) continue;
      one.store(made.get(), std::memory_order_release);
      return made.release();
    }
  } catch (...) {
    return nullptr;
  }
  return nullptr;
}

void Backend::launch(const abi::LaunchData& data, abi::StreamHandle order, std::uint64_t group) noexcept {
  const std::int64_t number = launched_.fetch_add(1, std::memory_order_relaxed);
  KnownFunction known;
  if (!code_->find(data, &known)) {
    lost_.add(Lost::kNoMemory);
    return;
  }
  const std::uint64_t place = leadline_monitor_context();
  if (!known.chosen || !selection_->launch(number, place)) {
    skipped_.fetch_add(1, std::memory_order_relaxed);
    // Patched code looks at its user data and returns.
    if (code_->was_patched(data.module)) {
      library_->functions().set_launch_callback_data(data.launch, data.function, data.stream_handle, nullptr);
    }
    return;
  }
  Flight flight;
  flight.launch = number;
  flight.time_ns = leadline_monitor_now();
  flight.place = place;
  flight.function_pc = known.pc;
  flight.name = known.name;
  flight.stream = order;
  flight.group = group;
  const auto count = [](const std::uint32_t(&dims)[3]) { return std::uint64_t{dims[0]} * dims[1] * dims[2]; };
  const std::uint64_t blocks = count(data.grid);
  const std::uint64_t threads = count(data.block);
  flight.threads = blocks * threads;
  const LaunchRow row{number,     flight.time_ns, place,      blocks, static_cast<std::uint32_t>(threads),
                      known.name, this_thread(),  data.device};
  if (!launches_.put(row)) lost_.add(Lost::kOut);
  measure(data, order, flight);
}

// A program launches ahead of its device, by more launches than there are trackers: this one waits until one is free.
// Where none becomes free for as long (launches that are captured do not run), it waits no more until one does.
bool Backend::begin_late(Trackers& trackers, const abi::LaunchData& data, abi::StreamHandle order, const Flight& flight,
                         Lost* why) noexcept {
  constexpr std::chrono::seconds kPatience{2};  // a kernel that is looked at may take as long
  const auto until = std::chrono::steady_clock::now() + kPatience;
  do {
    harvest();
    if (trackers.begin(flight, data, order, why)) {
      waiting_helps_.store(true, std::memory_order_relaxed);
      return true;
    }
    if (*why != Lost::kNoTracker || !waiting_helps_.load(std::memory_order_relaxed)) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  } while (std::chrono::steady_clock::now() < until);
  waiting_helps_.store(false, std::memory_order_relaxed);
  return false;
}

void Backend::measure(const abi::LaunchData& data, abi::StreamHandle order, const Flight& flight) noexcept {
  Lost why = Lost::kNotPatched;
  if (!code_->patched(data, &why)) {
    lost_.add(why);
    return;
  }
  Trackers* const trackers = trackers_of(data.context);
  why = Lost::kNoMemory;
  if (trackers != nullptr && trackers->begin(flight, data, order, &why)) return;
  if (why == Lost::kNoTracker && begin_late(*trackers, data, order, flight, &why)) return;
  lost_.add(why);
  library_->functions().set_launch_callback_data(data.launch, data.function, data.stream_handle, nullptr);
}

}  // namespace leadline::sanitizer
