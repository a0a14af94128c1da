// Qualified names of nn.Module objects: which object is a child of which, under what attribute.
//
// Written under the GIL when modules are registered, read on the slow path of a call path without it. Readers only ever
// try the lock: when it is taken they make do with the class name this once.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

namespace leadline {

class ModuleNames {
 public:
  void add(uintptr_t parent, uintptr_t child, std::string name);
  // A name for an object that has no parent, such as the variable that holds the model.
  void name_root(uintptr_t object, std::string name);
  // Called without the GIL: gives a root its name unless it has one; nothing happens when the lock is taken.
  void try_name_root(uintptr_t object, const std::string& name);
  // The object has died; its address may come again.
  void forget(uintptr_t object);
  void clear();
  // In the child of a fork: a reader of the parent may have held the lock.
  void after_fork() noexcept;

  struct Qualified {
    bool complete = false;  // false: the table could not be read just now
    bool root_named = false;
    uintptr_t root = 0;  // topmost object
    std::string name;    // dotted attributes from the root, with the root's own name first when it has one
  };
  Qualified qualified(uintptr_t object) const;

  // Changes whenever any name may have changed, so that names may be cached.
  uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }

 private:
  struct Entry {
    uintptr_t parent = 0;
    std::string name;
  };
  void changed() noexcept { generation_.fetch_add(1, std::memory_order_acq_rel); }

  mutable std::mutex mutex_;
  std::unordered_map<uintptr_t, Entry> entries_;
  std::atomic<uint64_t> generation_{1};
};

}  // namespace leadline
