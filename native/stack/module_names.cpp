#include "stack/module_names.h"

#include <algorithm>
#include <new>

#include "base/abandon.h"

namespace leadline {
namespace {

constexpr size_t kMostAncestors = 256;  // more than those of any module of a real model

std::string joined(const std::string& front, const std::string& back) {
  return front.empty() || back.empty() ? front + back : front + "." + back;
}

}  // namespace

void ModuleNames::unlink(uintptr_t parent, uintptr_t child, const std::string& name) {
  const auto found = entries_.find(child);
  if (found == entries_.end()) return;
  std::erase_if(found->second.parents, [&](const Link& link) { return link.parent == parent && link.name == name; });
}

void ModuleNames::add(uintptr_t parent, uintptr_t child, std::string name) {
  if (parent == child) return;
  const std::lock_guard lock(mutex_);
  const auto [slot, is_new] = entries_[parent].children.try_emplace(name, child);
  if (!is_new) {
    if (slot->second == child) return;
    unlink(parent, slot->second, name);
    slot->second = child;
  }
  Entry& entry = entries_[child];
  entry.root_name.clear();  // what it was called before it had a parent may long be wrong when it has none again
  entry.parents.push_back(Link{parent, std::move(name)});
  changed();
}

void ModuleNames::remove(uintptr_t parent, const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto holder = entries_.find(parent);
  if (holder == entries_.end()) return;
  const auto child = holder->second.children.find(name);
  if (child == holder->second.children.end()) return;
  unlink(parent, child->second, name);
  holder->second.children.erase(child);
  changed();
}

void ModuleNames::name_root(uintptr_t object, std::string name) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[object];
  if (!entry.parents.empty() || entry.root_name == name) return;
  entry.root_name = std::move(name);
  changed();
}

void ModuleNames::try_name_root(uintptr_t object, const std::string& name) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  Entry& entry = entries_[object];
  if (!entry.parents.empty() || !entry.root_name.empty()) return;
  entry.root_name = name;
  changed();
}

void ModuleNames::forget(uintptr_t object) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(object);
  if (found == entries_.end()) return;
  for (const auto& [name, child] : found->second.children) unlink(object, child, name);
  for (const Link& link : found->second.parents) {
    const auto parent = entries_.find(link.parent);
    if (parent != entries_.end()) parent->second.children.erase(link.name);
  }
  entries_.erase(found);
  changed();
}

void ModuleNames::clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  changed();
}

void ModuleNames::after_fork() noexcept {
  if (!renew(mutex_)) abandon(entries_);
}

ModuleNames::Qualified ModuleNames::qualified(uintptr_t object, std::span<const uintptr_t> callers) const {
  Qualified result;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return result;
  result.complete = true;
  // Everything that holds the object, the nearest first, each with its way down. A cycle made by a program ends here.
  struct Ancestor {
    uintptr_t object;
    std::string name;
  };
  std::vector<Ancestor> ancestors{{object, ""}};
  for (size_t i = 0; i < ancestors.size() && !callers.empty(); ++i) {
    const auto found = entries_.find(ancestors[i].object);
    if (found == entries_.end()) continue;
    for (const Link& link : found->second.parents) {
      const bool known = std::ranges::any_of(ancestors, [&](const Ancestor& a) { return a.object == link.parent; });
      if (known || ancestors.size() == kMostAncestors) continue;
      ancestors.push_back(Ancestor{link.parent, joined(link.name, ancestors[i].name)});
    }
  }
  for (size_t i = 0; i < callers.size(); ++i) {
    const auto holder = std::ranges::find(ancestors, callers[i], &Ancestor::object);
    if (holder == ancestors.end()) continue;
    result.caller = i;
    result.name = holder->name;
    return result;
  }
  // Nobody around it holds it: up by the first parents.
  result.root = object;
  for (size_t depth = 0; depth < kMostAncestors; ++depth) {
    const auto found = entries_.find(result.root);
    if (found == entries_.end()) return result;
    const Entry& entry = found->second;
    if (entry.parents.empty()) {
      result.root_named = !entry.root_name.empty();
      result.name = joined(entry.root_name, result.name);
      return result;
    }
    result.name = joined(entry.parents.front().name, result.name);
    result.root = entry.parents.front().parent;
  }
  return result;
}

}  // namespace leadline
