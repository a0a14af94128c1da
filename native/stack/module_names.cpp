#include "stack/module_names.h"

#include <new>

namespace leadline {

void ModuleNames::add(uintptr_t parent, uintptr_t child, std::string name) {
  if (parent == child) return;
  const std::lock_guard lock(mutex_);
  // A living parent always has an entry, so that one without is known to be dead.
  entries_.try_emplace(parent);
  // A module shared by several parents keeps the first, as long as it lives.
  Entry& entry = entries_[child];
  if (entry.parent != 0 && entries_.contains(entry.parent)) return;
  entry.parent = parent;
  entry.name = std::move(name);
  changed();
}

void ModuleNames::name_root(uintptr_t object, std::string name) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[object];
  if (entry.parent != 0 || entry.name == name) return;
  entry.name = std::move(name);
  changed();
}

void ModuleNames::try_name_root(uintptr_t object, const std::string& name) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  Entry& entry = entries_[object];
  if (entry.parent != 0 || !entry.name.empty()) return;
  entry.name = name;
  changed();
}

void ModuleNames::forget(uintptr_t object) {
  const std::lock_guard lock(mutex_);
  if (entries_.erase(object) != 0) changed();
}

void ModuleNames::clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  changed();
}

void ModuleNames::after_fork() noexcept { new (&mutex_) std::mutex(); }

ModuleNames::Qualified ModuleNames::qualified(uintptr_t object) const {
  Qualified result;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return result;
  result.complete = true;
  result.root = object;
  // Deeper than any real model; a cycle made by a program ends here.
  for (int depth = 0; depth < 256; ++depth) {
    const auto found = entries_.find(result.root);
    if (found == entries_.end()) return result;
    const Entry& entry = found->second;
    // The parent has died and this object has not: nothing may be read at its address, and the name was relative to it.
    if (entry.parent != 0 && !entries_.contains(entry.parent)) return result;
    if (!entry.name.empty()) result.name = result.name.empty() ? entry.name : entry.name + "." + result.name;
    if (entry.parent == 0) {
      result.root_named = !entry.name.empty();
      return result;
    }
    result.root = entry.parent;
  }
  return result;
}

}  // namespace leadline
