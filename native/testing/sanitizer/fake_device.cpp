#include "testing/sanitizer/fake_device.h"

#include <cstdlib>
#include <cstring>
#include <utility>

namespace leadline::testing::sanitizer {

FakeStream::FakeStream() : thread_([this] { run(); }) {}

FakeStream::~FakeStream() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    held_ = false;
  }
  change_.notify_all();
  thread_.join();
}

void FakeStream::queue(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  change_.notify_all();
}

void FakeStream::hold(bool on) {
  {
    const std::lock_guard lock(mutex_);
    held_ = on;
  }
  change_.notify_all();
}

void FakeStream::wait() {
  std::unique_lock lock(mutex_);
  change_.wait(lock, [this] { return work_.empty() && !busy_; });
}

void FakeStream::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    change_.wait(lock, [this] { return ends_ || (!held_ && !work_.empty()); });
    if (work_.empty()) return;
    const std::function<void()> next = std::move(work_.front());
    work_.pop_front();
    busy_ = true;
    lock.unlock();
    next();
    lock.lock();
    busy_ = false;
    change_.notify_all();
  }
}

FakeDevice& FakeDevice::instance() {
  static auto* const device = [] {
    auto* const made = new FakeDevice;  // streams of a program that ends are not waited for
    made->taken = std::getenv("FAKE_SANITIZER_TAKEN") != nullptr;
    return made;
  }();
  return *device;
}

void FakeDevice::reset() {
  contexts_.clear();  // their streams finish first
  const std::lock_guard lock(mutex_);
  modules_.clear();
  unloaded_.clear();
  kernels_.clear();
  memory_.clear();
  for (const auto& [memory, bytes] : allocations_) std::free(memory);
  allocations_.clear();
  calls_.clear();
  callback_ = nullptr;
  refuses = abi::kSuccess;
  taken = false;
  last_point = 47;
  memory_left = INT64_MAX;
}

void FakeDevice::call_back(abi::Domain domain, std::uint32_t id, const void* data) {
  const abi::Callback callback = callback_;
  if (callback && (domains_ >> static_cast<int>(domain) & 1U)) callback(user_, domain, id, data);
}

FakeContext& FakeDevice::context_of(const std::string& name) {
  if (!contexts_.contains(name)) context(name, 0);
  const std::lock_guard lock(mutex_);
  return *contexts_.at(name);
}

FakeStream& FakeDevice::stream_in(FakeContext& context, const std::string& name) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<FakeStream>& stream = context.streams[name];
  if (!stream) stream = std::make_unique<FakeStream>();
  return *stream;
}

FakeFunction& FakeDevice::function_of(const std::string& name, const std::string& module) {
  const std::lock_guard lock(mutex_);
  for (const auto& function : modules_.at(module)->functions) {
    if (function->name == name) return *function;
  }
  throw std::out_of_range(name);
}

void FakeDevice::context(const std::string& name, std::int32_t device) {
  auto made = std::make_unique<FakeContext>();
  made->name = name;
  made->device = device;
  FakeContext* const context = made.get();
  {
    const std::lock_guard lock(mutex_);
    contexts_[name] = std::move(made);
  }
  const void* data[2] = {context, nullptr};
  call_back(abi::Domain::kResource, static_cast<std::uint32_t>(abi::Resource::kContextCreated), data);
}

void FakeDevice::destroy_context(const std::string& name) {
  FakeContext& context = context_of(name);
  for (const auto& [key, stream] : context.streams) stream->wait();
  const void* data[2] = {&context, nullptr};
  call_back(abi::Domain::kResource, static_cast<std::uint32_t>(abi::Resource::kContextDestroyStarting), data);
  const std::lock_guard lock(mutex_);
  std::erase_if(modules_, [&](const auto& one) { return one.second->context == &context; });
  contexts_.erase(name);
}

void FakeDevice::module(const std::string& name, const std::string& context, const std::vector<std::string>& functions,
                        const std::string& image) {
  auto made = std::make_unique<FakeModule>();
  made->context = &context_of(context);
  made->name = name;
  made->image = image;
  FakeModule* const module = made.get();
  {
    const std::lock_guard lock(mutex_);
    modules_[name] = std::move(made);
  }
  const abi::ModuleData data{reinterpret_cast<abi::Context>(module->context), reinterpret_cast<abi::Module>(module),
                             module->image.size(), module->image.data()};
  call_back(abi::Domain::kResource, static_cast<std::uint32_t>(abi::Resource::kModuleLoaded), &data);
  lazy(name, functions);
}

void FakeDevice::lazy(const std::string& name, const std::vector<std::string>& functions) {
  std::vector<abi::Function> handles;
  FakeModule* module = nullptr;
  {
    const std::lock_guard lock(mutex_);
    module = modules_.at(name).get();
    for (const std::string& function : functions) {
      module->functions.push_back(std::make_unique<FakeFunction>(FakeFunction{module, function, next_pc_}));
      next_pc_ += 0x1000;
      handles.push_back(reinterpret_cast<abi::Function>(module->functions.back().get()));
    }
  }
  const abi::FunctionsData data{reinterpret_cast<abi::Context>(module->context), reinterpret_cast<abi::Module>(module),
                                handles.data(), static_cast<std::uint32_t>(handles.size())};
  call_back(abi::Domain::kResource, static_cast<std::uint32_t>(abi::Resource::kFunctionsLazyLoaded), &data);
  if (!module->patched.empty()) {
    call_back(abi::Domain::kResource, static_cast<std::uint32_t>(abi::Resource::kFunctionsLazyPatched), &data);
  }
}

void FakeDevice::unload(const std::string& name) {
  FakeModule* module = nullptr;
  {
    const std::lock_guard lock(mutex_);
    module = modules_.at(name).get();
  }
  const abi::ModuleData data{reinterpret_cast<abi::Context>(module->context), reinterpret_cast<abi::Module>(module),
                             module->image.size(), module->image.data()};
  call_back(abi::Domain::kResource, static_cast<std::uint32_t>(abi::Resource::kModuleUnloadStarting), &data);
  const std::lock_guard lock(mutex_);
  unloaded_.push_back(std::move(modules_.at(name)));
  modules_.erase(name);
}

Kernel& FakeDevice::kernel(const std::string& name) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Kernel>& kernel = kernels_[name];
  if (!kernel) kernel = std::make_unique<Kernel>(Kernel{name, {}});
  return *kernel;
}

void FakeDevice::memory_event(abi::Resource id, const Memory& memory) {
  const abi::MemoryData data{.address = memory.address,
                             .size = memory.bytes,
                             .context = reinterpret_cast<abi::Context>(memory.context),
                             .device = memory.context->device,
                             .stream = nullptr,
                             .stream_handle = nullptr,
                             .pool = nullptr,
                             .flags = 0};
  call_back(abi::Domain::kResource, static_cast<std::uint32_t>(id), &data);
}

void FakeDevice::alloc(const std::string& name, const std::string& context, std::uint64_t bytes, bool async) {
  Memory memory{0, bytes, &context_of(context)};
  {
    const std::lock_guard lock(mutex_);
    memory.address = next_address_;
    next_address_ += (bytes + 511) / 512 * 512;
    memory_[name] = memory;
  }
  memory_event(async ? abi::Resource::kMemoryAllocAsync : abi::Resource::kMemoryAlloc, memory);
}

void FakeDevice::free(const std::string& name, bool async) {
  Memory memory;
  {
    const std::lock_guard lock(mutex_);
    memory = memory_.at(name);
    memory_.erase(name);
  }
  memory_event(async ? abi::Resource::kMemoryFreeAsync : abi::Resource::kMemoryFree, memory);
}

std::uint64_t FakeDevice::address_of(const std::string& memory) {
  const std::lock_guard lock(mutex_);
  const auto found = memory_.find(memory);
  return found == memory_.end() ? std::strtoull(memory.c_str(), nullptr, 0) : found->second.address;
}

abi::LaunchData FakeDevice::launch_data(FakeFunction& function, FakeStream& stream, const Dims& dims,
                                        FakeLaunch* launch) {
  const auto handle = reinterpret_cast<abi::StreamHandle>(&stream);
  abi::LaunchData data{};
  data.context = reinterpret_cast<abi::Context>(function.module->context);
  data.stream = reinterpret_cast<abi::Stream>(&stream);
  data.stream_handle = handle;
  data.module = reinterpret_cast<abi::Module>(function.module);
  data.function = reinterpret_cast<abi::Function>(&function);
  data.function_name = function.name.c_str();
  data.grid[0] = dims.grid;
  data.block[0] = dims.block;
  data.grid[1] = data.grid[2] = data.block[1] = data.block[2] = 1;
  data.cluster[0] = data.cluster[1] = data.cluster[2] = 1;
  data.launch = reinterpret_cast<abi::LaunchHandle>(launch);
  data.device = function.module->context->device;
  data.api_context = data.context;
  data.api_stream = data.stream;
  data.api_stream_handle = handle;
  const std::lock_guard lock(mutex_);
  data.grid_id = next_grid_++;
  return data;
}

// What the code is patched with is settled at the launch, as on a device where code was loaded by then.
void FakeDevice::start(FakeFunction& function, FakeStream& stream, const Dims& dims, const FakeLaunch& launch) {
  Kernel drawn = kernel(function.name);
  for (DrawnAccess& access : drawn.accesses) access.base = address_of(access.memory);
  Patches patches;
  void* library = nullptr;
  {
    const std::lock_guard lock(mutex_);
    patches = function.module->patched;
    library = function.module->context->patches;
  }
  stream.queue([drawn = std::move(drawn), patches = std::move(patches), library, dims, pc = function.pc,
                data = launch.callback_data] {
    if (!patches.empty()) run_patched(patches, library, drawn, dims, pc, data);
  });
}

void FakeDevice::launch(const std::string& name, const std::string& module, const std::string& stream_name,
                        const Dims& dims) {
  FakeFunction& function = function_of(name, module);
  FakeStream& stream = stream_in(*function.module->context, stream_name);
  FakeLaunch launch{&function, function.callback_data};
  abi::LaunchData data = launch_data(function, stream, dims, &launch);
  call_back(abi::Domain::kLaunch, static_cast<std::uint32_t>(abi::Launch::kBegin), &data);
  call_back(abi::Domain::kLaunch, static_cast<std::uint32_t>(abi::Launch::kAfterSyscallSetup), &data);
  start(function, stream, dims, launch);
  call_back(abi::Domain::kLaunch, static_cast<std::uint32_t>(abi::Launch::kEnd), &data);
}

void FakeDevice::replay(const std::vector<std::string>& functions, const std::string& module,
                        const std::string& stream_name, const Dims& dims, bool upload) {
  std::uint32_t launch_id = 0;
  for (const std::string& name : functions) {
    FakeFunction& function = function_of(name, module);
    FakeStream& stream = stream_in(*function.module->context, stream_name);
    FakeLaunch launch{&function, function.callback_data};
    abi::GraphNodeData data{};
    data.graph_exec = this;
    data.launch_id = ++launch_id;
    data.node_type = abi::kGraphNodeKernel;
    data.launch = launch_data(function, stream, dims, &launch);
    data.is_upload = upload ? 1 : 0;
    call_back(abi::Domain::kGraphs, static_cast<std::uint32_t>(abi::Graphs::kNodeLaunchBegin), &data);
    if (!upload) start(function, stream, dims, launch);
    call_back(abi::Domain::kGraphs, static_cast<std::uint32_t>(abi::Graphs::kNodeLaunchEnd), &data);
  }
}

void FakeDevice::hold(const std::string& context, const std::string& stream, bool on) {
  stream_in(context_of(context), stream).hold(on);
}

void FakeDevice::synchronize() {
  std::vector<FakeStream*> streams;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, context] : contexts_) {
      for (const auto& [key, stream] : context->streams) streams.push_back(stream.get());
    }
  }
  for (FakeStream* stream : streams) stream->wait();
}

}  // namespace leadline::testing::sanitizer
