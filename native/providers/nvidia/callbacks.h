// What happens at the begin and end of a followed call, and at contexts, modules and graphs.
//
// Runs inside the program's CUDA calls: nothing here throws, waits, or allocates on the path of a launch. A driver call
// made by the runtime inside one of its own calls is one call to the user (gpu/api_calls.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "gpu/api_calls.h"
#include "providers/nvidia/api_names.h"
#include "providers/nvidia/cupti_library.h"

namespace leadline::nvidia {

class KernelReplay;

class Callbacks {
 public:
  Callbacks(const CuptiFunctions& cupti, const ApiTable& names, gpu::LaunchTables& tables)
      : cupti_(cupti), names_(names), tables_(tables), calls_(tables) {}

  void handle(cupti::Domain domain, std::uint32_t cbid, const void* data) noexcept;

  // Waits become metrics here when CUPTI gives no synchronisation records (`time_waits`).
  void set_time_waits(bool on) noexcept { calls_.set_time_waits(on); }
  // Only kernels give records.
  void expect_no_copies() noexcept { copies_expected_ = false; }
  // Nothing gives records.
  void expect_no_kernels() noexcept { kernels_expected_ = false; }
  void set_recorder(gpu::Recorder* recorder) noexcept { calls_.set_recorder(recorder); }
  void close() noexcept { calls_.close(); }
  void open() noexcept { calls_.open(); }
  void pause() noexcept { calls_.pause(); }
  void resume() noexcept { open(); }
  bool is_open() const noexcept { return calls_.is_open(); }
  // Told of every outermost launch; set before callbacks are enabled, null: nobody.
  void set_replay(KernelReplay* replay) noexcept { replay_ = replay; }
  // Instructions of single launches are sampled; set before callbacks are enabled.
  void tell_launches() noexcept { tells_launches_ = true; }
  std::uint64_t calls() const noexcept { return calls_.count(); }
  bool graphs_seen() const noexcept { return graphs_seen_.load(std::memory_order_relaxed); }

  gpu::ApiCalls& api() noexcept { return calls_; }

 private:
  void enter(const ApiCall& call, const cupti::CallbackData& data) noexcept;
  void leave(const ApiCall& call, const cupti::CallbackData& data) noexcept;
  void resource(cupti::Resource which, const cupti::ResourceData& data, bool told) noexcept;
  void instantiated() noexcept;
  void graph(cupti::Resource which, const cupti::GraphData& data, bool told) noexcept;
  std::int32_t device_of(void* context) noexcept;
  std::int64_t stream_of(const ApiCall& call, const cupti::CallbackData& data) noexcept;

  const CuptiFunctions& cupti_;
  const ApiTable& names_;
  gpu::LaunchTables& tables_;
  gpu::ApiCalls calls_;
  KernelReplay* replay_ = nullptr;
  bool tells_launches_ = false;
  bool kernels_expected_ = true;
  bool copies_expected_ = true;  // this and the one before are set before callbacks are enabled
  std::atomic<bool> graphs_seen_{false};
};

}  // namespace leadline::nvidia
