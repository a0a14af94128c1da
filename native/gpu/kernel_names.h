// What a kernel's name tells: the readable form, whether it is a collective, and (for kernels that torch.compile or
// Triton made) the source they came from, as registered by the Python side.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "leadline/monitor.h"

namespace leadline::gpu {

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept { return hash_bytes(text.data(), text.size()); }
};

struct KernelSource {
  std::string file;
  std::int32_t line = 0;
  std::string detail;  // JSON object
};

// Filled by Python when code is generated, read when a kernel's name is met for the first time.
class KernelSources {
 public:
  static constexpr std::size_t kMost = 1u << 16;
  static constexpr std::size_t kMostUsers = 64;  // of one kernel

  // One generated file whose code launches the kernel, and what the kernel is made of there.
  struct User {
    std::string file;
    KernelSource source;
  };

  void put(const std::string& kernel, KernelSource source);
  // As above for launches from one file: compilers name the kernels of several graphs alike.
  void put_user(const std::string& kernel, std::string file, KernelSource source);
  bool find(std::string_view kernel, KernelSource* source) const;
  std::vector<User> users(std::string_view kernel) const;
  // In the child of a fork.
  void after_fork() noexcept;
  // Changes whenever a source was added.
  std::uint64_t version() const noexcept { return version_.load(std::memory_order_acquire); }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, KernelSource, StringHash, std::equal_to<>> sources_;
  std::unordered_map<std::string, std::vector<User>, StringHash, std::equal_to<>> users_;
  std::atomic<std::uint64_t> version_{0};
};

// The process's own, of every vendor; never destroyed.
KernelSources& kernel_sources();

// What a kernel's frame shows beside its name.
struct KernelFrame {
  std::uint64_t number = 0;  // of the frame, for the monitor
  std::string detail;        // JSON object or empty
  std::string file;
  std::int32_t line = 0;
};

struct KernelName {
  std::string text;  // demangled
  bool collective = false;
  KernelFrame frame;
  // Where several generated files launch a kernel of this name: the frame of each, by its file.
  std::vector<std::pair<std::string, KernelFrame>> users;
  std::unordered_map<leadline_context, std::size_t> user_of;  // places looked at; users.size(): none of them

  // The frame for a launch at `place`.
  const KernelFrame& frame_at(leadline_context place);
};

// "AllReduce" for ncclDevKernel_AllReduce_Sum_f32_RING_LL(...) and older spellings; empty for other kernels.
std::string_view collective_of(std::string_view kernel) noexcept;

// Each distinct mangled name is worked out once. Single-threaded; forgets everything beyond kMost names.
class KernelNames {
 public:
  static constexpr std::size_t kMost = 1u << 14;
  explicit KernelNames(const KernelSources& sources);
  KernelName& get(const char* mangled);

 private:
  using Names = std::unordered_map<std::string, KernelName, StringHash, std::equal_to<>>;
  // Vendors hand out one text per loaded kernel, so its address nearly always tells the name; the text is compared all
  // the same, since a module may be unloaded and another come to stand there.
  struct Met {
    const char* address = nullptr;
    Names::value_type* known = nullptr;
  };
  static constexpr std::size_t kMet = 1u << 10;

  KernelName learn(const char* mangled) const;

  const KernelSources& sources_;
  std::uint64_t sources_version_ = 0;
  KernelName unnamed_;
  Names names_;  // its elements stay where they are
  std::array<Met, kMet> met_{};
};

}  // namespace leadline::gpu
