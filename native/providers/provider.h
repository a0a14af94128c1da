// What a source of events is to the session: a framework or a vendor that begins, rests, forks and ends with it.
//
// A provider is a folder beside this file and one line in session/providers.cpp. It sees the monitor and `base`, never
// another provider, the collector or Python. The contract:
//
// * start() attaches and begins to emit. A provider whose library is not there yet says so in its answer and may be
//   started again; start() while started attaches anew. Nothing throws: what failed is a sentence in the answer.
// * pause() returns when no thread emits any more what begins on the program's threads: operators, regions, calls,
//   compilation. Ends go on: of a scope whose begin was emitted before, the end is emitted whenever it comes. Where
//   ends of scopes begun in a pause cannot be told from those, each such begin calls Monitor::begun_unheard(). Memory
//   goes on too, so that what is freed in a pause lives no longer. Hooks stay, as cheap as can be. resume() undoes it.
//   Both may come twice, before start() and after stop(). What happens while paused is not measured, now or later, and
//   is no loss: it was asked for.
// * Work that outlives the call that began it (device work) belongs to the moment it was begun. Begun before the pause
//   and finished or reported during it: emit it when it is known, it keeps its time, so the session goes on listening
//   to LEADLINE_DOMAIN_GPU_ACTIVITY. Begun while paused: the provider remembers that, as it remembers
//   a context, and drops the work whenever it is reported, during the pause or after it.
// * before_fork() runs before the parent forks, after_fork_parent() and after_fork_child() after it. In the child only
//   the calling thread exists: a provider that goes on there emits again as before, one that cannot forgets everything
//   without a call into its library. It may not count on having seen before_fork(): a fork in C runs none of these.
// * before_exec() books what is known and not told yet; the program may go on, where the exec fails.
// * stop() takes every hook away and waits for no longer than Options promise; no event comes after it.
//
// The session calls these one after the other, never two at once, and never with the GIL held.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/device_table.h"

namespace leadline {

// What a provider says of itself: `ok`, `message` (a sentence or empty) and what it likes to add.
using ProviderValue = std::variant<bool, int64_t, double, std::string>;
using ProviderStatus = std::map<std::string, ProviderValue>;

// Something that the other side can do for a provider, such as running one known operator. It may be called from
// start() only, and throws nothing.
using ProviderCall = std::function<ProviderStatus()>;

using ProviderOption = std::variant<bool, int64_t, double, std::string, std::vector<std::string>, ProviderCall>;

struct ProviderOptions {
  // What the session was asked to measure, of every provider.
  bool memory = true;
  bool shapes = false;
  // The session's ear for what a provider learns about devices; empty where nobody asks.
  std::function<void(DeviceDescription)> describe_device;
  // The provider's own, by the names that its header lists.
  std::map<std::string, ProviderOption> own;

  template <class T>
  T get(const std::string& name, T otherwise) const {
    const auto found = own.find(name);
    if (found == own.end()) return otherwise;
    if (const T* value = std::get_if<T>(&found->second)) return *value;
    if constexpr (std::is_same_v<T, double>) {
      if (const int64_t* whole = std::get_if<int64_t>(&found->second)) return static_cast<double>(*whole);
    }
    return otherwise;
  }
};

// `otherwise` where the status has no such value of this type.
template <class T>
T status_value(const ProviderStatus& status, const std::string& name, T otherwise) {
  const auto found = status.find(name);
  if (found == status.end()) return otherwise;
  const T* value = std::get_if<T>(&found->second);
  return value == nullptr ? otherwise : *value;
}

class Provider {
 public:
  Provider() = default;
  virtual ~Provider() = default;
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;

  // A word, by which options and reports know it.
  virtual const char* name() const noexcept = 0;
  virtual ProviderStatus start(const ProviderOptions& options) = 0;
  virtual void pause() noexcept = 0;
  virtual void resume() noexcept = 0;
  // Leaves out what a cost budget lets rest first, or measures it again. From any thread, also before start().
  virtual void rest(bool) noexcept {}
  virtual void before_exec() noexcept {}
  virtual void before_fork() noexcept {}
  virtual void after_fork_parent() noexcept {}
  virtual void after_fork_child() noexcept {}
  virtual void stop() noexcept = 0;
  virtual ProviderStatus status() const = 0;
  // What it cost since start() beside the events that it handed over, as CPU time. Asked while a segment is written, by
  // a thread that a fork waits for after before_fork(): so it waits for nothing that before_fork() holds.
  virtual int64_t cost_ns() const noexcept { return 0; }
};

}  // namespace leadline
