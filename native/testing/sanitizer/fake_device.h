// The device and driver behind the fake Compute Sanitizer: contexts, streams that run on threads of their own, modules,
// memory, and kernels whose accesses are drawn.
//
// What a program does goes through here and reaches the subscriber as the vendor's callbacks, on the calling thread and
// without a lock of ours. Work of a stream runs in order, after the call that queued it has returned; `hold` keeps it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backends/sanitizer/sanitizer_abi.h"

namespace leadline::testing::sanitizer {

namespace abi = leadline::sanitizer::abi;

// Accesses of consecutive threads: thread i touches `first + i * stride`, `count` of them in all.
struct DrawnAccess {
  abi::Point point = abi::Point::kGlobal;
  std::string memory;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t stride = 4;
  std::uint32_t bytes = 4;
  std::uint32_t flags = 1;  // 1 read, 2 write
  std::uint64_t value = 0;  // the bits written
  std::uint64_t pc = 0;     // offset in the function
  std::uint64_t base = 0;   // of the memory, filled in at the launch
};

struct Kernel {
  std::string name;
  std::vector<DrawnAccess> accesses;
  bool dies = false;  // no thread comes to the exit
};

class FakeStream {
 public:
  FakeStream();
  ~FakeStream();
  FakeStream(const FakeStream&) = delete;
  FakeStream& operator=(const FakeStream&) = delete;
  void queue(std::function<void()> work);
  void hold(bool on);
  void wait();

 private:
  void run();
  std::mutex mutex_;
  std::condition_variable change_;
  std::deque<std::function<void()>> work_;
  bool held_ = false;
  bool busy_ = false;
  bool ends_ = false;
  std::thread thread_;
};

struct FakeContext {
  std::string name;
  std::int32_t device = 0;
  std::map<std::string, std::unique_ptr<FakeStream>> streams;
  void* patches = nullptr;  // what sanitizerAddPatches loaded
};

struct FakeModule;
struct FakeFunction {
  FakeModule* module = nullptr;
  std::string name;
  std::uint64_t pc = 0;
  const Kernel* kernel = nullptr;
  const void* callback_data = nullptr;
};

using Patches = std::map<abi::Point, void*>;

struct FakeModule {
  FakeContext* context = nullptr;
  std::string name;
  std::string image;
  Patches asked;
  Patches patched;  // what launches from now on call
  std::vector<std::unique_ptr<FakeFunction>> functions;
};

struct FakeLaunch {
  FakeFunction* function = nullptr;
  const void* callback_data = nullptr;
};

struct Memory {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  FakeContext* context = nullptr;
};

struct Dims {
  std::uint32_t grid = 1;
  std::uint32_t block = 32;
};

// Calls the patches for every thread of a launch; in fake_run.cpp.
void run_patched(const Patches& patches, void* library, const Kernel& kernel, const Dims& dims, std::uint64_t pc,
                 const void* user);

class FakeDevice {
 public:
  static FakeDevice& instance();
  // Everything goes; counts begin anew.
  void reset();

  // ---- what a program does; names are those of the scenario
  void context(const std::string& name, std::int32_t device);
  void destroy_context(const std::string& name);
  void module(const std::string& name, const std::string& context, const std::vector<std::string>& functions,
              const std::string& image);
  void lazy(const std::string& module, const std::vector<std::string>& functions);
  void unload(const std::string& name);
  Kernel& kernel(const std::string& name);
  void alloc(const std::string& name, const std::string& context, std::uint64_t bytes, bool async);
  void free(const std::string& name, bool async);
  void launch(const std::string& function, const std::string& module, const std::string& stream, const Dims& dims);
  void replay(const std::vector<std::string>& functions, const std::string& module, const std::string& stream,
              const Dims& dims, bool upload);
  void hold(const std::string& context, const std::string& stream, bool on);
  void synchronize();
  std::uint64_t address_of(const std::string& memory);

  // ---- behind the vendor's functions
  abi::Result subscribe(abi::Subscriber* out, abi::Callback callback, void* user);
  abi::Result unsubscribe();
  void enable(abi::Domain domain, bool on);
  abi::Result add_patches(const char* image, FakeContext* context);
  abi::Result ask_patch(abi::Point point, FakeModule* module, const char* name);
  abi::Result patch(FakeModule* module, bool on);
  bool is_module(const FakeModule* module);
  FakeStream* stream_of(abi::StreamHandle handle) { return reinterpret_cast<FakeStream*>(handle); }
  void* allocate(std::size_t bytes);
  abi::Result release(void* memory);
  std::size_t held_allocations();
  void count(const char* function);
  std::uint64_t calls(const std::string& function);

  // How it behaves.
  std::atomic<abi::Result> refuses{abi::kSuccess};  // of every call that needs the driver
  std::atomic<bool> taken{false};                   // another tool has subscribed
  std::atomic<int> last_point{47};                  // 40: a release before 13.3
  std::atomic<std::int64_t> memory_left{INT64_MAX};

 private:
  void call_back(abi::Domain domain, std::uint32_t id, const void* data);
  void memory_event(abi::Resource id, const Memory& memory);
  FakeContext& context_of(const std::string& name);
  FakeStream& stream_in(FakeContext& context, const std::string& name);
  FakeFunction& function_of(const std::string& name, const std::string& module);
  abi::LaunchData launch_data(FakeFunction& function, FakeStream& stream, const Dims& dims, FakeLaunch* launch);
  void start(FakeFunction& function, FakeStream& stream, const Dims& dims, const FakeLaunch& launch);

  std::mutex mutex_;
  std::atomic<abi::Callback> callback_{nullptr};
  std::atomic<void*> user_{nullptr};
  std::atomic<std::uint32_t> domains_{0};
  std::map<std::string, std::unique_ptr<FakeContext>> contexts_;
  std::map<std::string, std::unique_ptr<FakeModule>> modules_;
  std::vector<std::unique_ptr<FakeModule>> unloaded_;  // work in flight may still use them
  std::map<std::string, std::unique_ptr<Kernel>> kernels_;
  std::map<std::string, Memory> memory_;
  std::map<void*, std::size_t> allocations_;
  std::map<std::string, std::uint64_t> calls_;
  std::uint64_t next_address_ = 0x7f0000000000;
  std::uint64_t next_pc_ = 0x10000;
  std::uint64_t next_grid_ = 1;
};

}  // namespace leadline::testing::sanitizer

// For programs and tests: plays scenario text (see fake_scenario.cpp). Zero, or the number of the line that says
// nothing known.
extern "C" int fake_sanitizer_play(const char* text);
extern "C" std::uint64_t fake_sanitizer_calls(const char* function);
extern "C" std::uint64_t fake_sanitizer_allocations();
