// Qualified names of nn.Module objects: which object is held by which others, under what attributes.
//
// A module may have several parents; which of its names is meant is told by the modules that are being called around
// it. Written under the GIL when modules are registered, read on the slow path of a call path without it. Readers only
// ever try the lock: when it is taken they make do with the class name this once.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace leadline {

class ModuleNames {
 public:
  // Whatever the parent held under this name before is its child no longer.
  void add(uintptr_t parent, uintptr_t child, std::string name);
  void remove(uintptr_t parent, const std::string& name);
  // A name for an object that has no parent, such as the variable that holds the model.
  void name_root(uintptr_t object, std::string name);
  // Called without the GIL: gives a root its name unless it has one; nothing happens when the lock is taken.
  void try_name_root(uintptr_t object, const std::string& name);
  // The object has died; its address may come again.
  void forget(uintptr_t object);
  void clear();
  // In the child of a fork: a reader of the parent may have held the lock.
  void after_fork() noexcept;

  static constexpr size_t kNoCaller = ~size_t{0};
  struct Qualified {
    bool complete = false;      // false: the table could not be read just now
    size_t caller = kNoCaller;  // the caller that `name` begins at, empty for the caller itself
    bool root_named = false;
    uintptr_t root = 0;  // topmost object, where no caller holds the module
    std::string name;    // dotted attributes from the caller; or from the root, with the root's own name first if any
  };
  // `callers`: modules being called around the object, innermost first. The first that holds it, at any depth, counts.
  Qualified qualified(uintptr_t object, std::span<const uintptr_t> callers = {}) const;

  // Changes whenever any name may have changed, so that names may be cached.
  uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }

 private:
  struct Link {
    uintptr_t parent = 0;
    std::string name;
  };
  struct Entry {
    std::string root_name;
    std::vector<Link> parents;  // the first registered first
    std::unordered_map<std::string, uintptr_t> children;
  };
  void unlink(uintptr_t parent, uintptr_t child, const std::string& name);
  void changed() noexcept { generation_.fetch_add(1, std::memory_order_acq_rel); }

  mutable std::mutex mutex_;
  std::unordered_map<uintptr_t, Entry> entries_;
  std::atomic<uint64_t> generation_{1};
};

}  // namespace leadline
