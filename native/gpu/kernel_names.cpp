#include "gpu/kernel_names.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/abandon.h"
#include "gpu/cut_name.h"

namespace leadline::gpu {
namespace {

// Empty where it is not known how.
std::string demangled(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(mangled, nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 && text ? text.get() : "";
}

// Types of compilers for GPUs (Composable Kernel's names are full of them) that the C++ library's demangler may not
// know, or reads wrongly, by types that it knows and that no kernel has: neither counts among what a name refers back
// to.
struct NewType {
  std::string_view mangled;
  std::string_view stand_in;
  std::string_view stand_in_name;
  std::string_view name;
};
constexpr NewType kNewTypes[] = {
    {"DF16_", "Dd", "decimal64", "_Float16"},
    {"DF16b", "De", "decimal128", "__bf16"},
    {"DB8_", "Df", "decimal32", "_BitInt(8)"},
    {"DU8_", "Du", "char8_t", "unsigned _BitInt(8)"},
};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

// What tells names apart whose beginnings are the same: FNV-1a, as python/leadline/profiles/demangle.py has it.
std::string digest(std::string_view name) {
  std::uint32_t value = 0x811c9dc5;
  for (const char c : name) value = (value ^ static_cast<unsigned char>(c)) * 0x01000193;
  char text[9];
  static_cast<void>(std::snprintf(text, sizeof text, "%08x", value));
  return text;
}

// Of names that are too long, what stands in front, and a digest of the `whole`.
std::string demangled_or_cut(const std::string& mangled, std::string_view whole) {
  std::string text = demangled(mangled.c_str());
  if (!text.empty() || mangled.size() <= kLongestName) return text;
  text = demangled(cut_name(mangled).c_str());
  if (text.ends_with("()")) text.insert(text.size() - 1, "... #" + digest(whole));
  return text;
}

std::string demangle(const char* mangled) {
  if (mangled[0] != '_' || mangled[1] != 'Z') return mangled;
  std::string known = mangled;
  for (const NewType& type : kNewTypes) replace_all(known, type.mangled, type.stand_in);
  std::string text = known == mangled ? "" : demangled_or_cut(known, mangled);
  if (!text.empty()) {
    for (const NewType& type : kNewTypes) replace_all(text, type.stand_in_name, type.name);
    return text;
  }
  text = demangled_or_cut(mangled, mangled);
  return text.empty() ? mangled : text;
}

}  // namespace

KernelSources& kernel_sources() {
  static auto& made = *new KernelSources;
  return made;
}

void KernelSources::put(const std::string& kernel, KernelSource source) {
  const std::lock_guard lock(mutex_);
  if (sources_.size() >= kMost && !sources_.contains(kernel)) return;
  sources_.insert_or_assign(kernel, std::move(source));
  version_.fetch_add(1, std::memory_order_release);
}

void KernelSources::put_user(const std::string& kernel, std::string file, KernelSource source) {
  const std::lock_guard lock(mutex_);
  if (users_.size() >= kMost && !users_.contains(kernel)) return;
  std::vector<User>& users = users_[kernel];
  const auto known = std::find_if(users.begin(), users.end(), [&](const User& user) { return user.file == file; });
  if (known != users.end()) {
    known->source = std::move(source);
  } else if (users.size() < kMostUsers) {
    users.push_back({std::move(file), std::move(source)});
  }
  version_.fetch_add(1, std::memory_order_release);
}

void KernelSources::after_fork() noexcept {
  if (renew(mutex_)) return;
  abandon(sources_);
  abandon(users_);
}

std::vector<KernelSources::User> KernelSources::users(std::string_view kernel) const {
  const std::lock_guard lock(mutex_);
  const auto found = users_.find(kernel);
  return found == users_.end() ? std::vector<User>() : found->second;
}

bool KernelSources::find(std::string_view kernel, KernelSource* source) const {
  const std::lock_guard lock(mutex_);
  const auto found = sources_.find(kernel);
  if (found == sources_.end()) return false;
  *source = found->second;
  return true;
}

std::string_view collective_of(std::string_view kernel) noexcept {
  // NCCL 2.18 and later: ncclDevKernel_AllReduce_Sum_f32_RING_LL; earlier: ncclKernel_AllReduce_RING_LL_Sum_float.
  for (const std::string_view prefix : {"ncclDevKernel_", "ncclKernel_", "ncclSymkDevKernel_"}) {
    const auto at = kernel.find(prefix);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = kernel.substr(at + prefix.size());
    return rest.substr(0, rest.find_first_of("_(<"));
  }
  return {};
}

const KernelFrame& KernelName::frame_at(leadline_context place) {
  constexpr std::size_t kMostPlaces = 1u << 14;
  if (users.empty()) return frame;
  if (user_of.size() >= kMostPlaces) user_of.clear();
  const auto [found, is_new] = user_of.try_emplace(place, users.size());
  if (is_new) {
    const auto user = std::find_if(users.begin(), users.end(), [&](const auto& each) {
      return leadline_monitor_context_in_file(place, each.first.c_str()) != 0;
    });
    found->second = static_cast<std::size_t>(user - users.begin());
  }
  return found->second < users.size() ? users[found->second].second : frame;
}

KernelNames::KernelNames(const KernelSources& sources) : sources_(sources) {
  unnamed_.text = "(unnamed kernel)";
  unnamed_.frame.number = leadline_monitor_new_frame();
}

KernelName& KernelNames::get(const char* mangled) {
  if (!mangled || !*mangled) return unnamed_;
  if (const std::uint64_t version = sources_.version(); version != sources_version_ || names_.size() >= kMost) {
    names_.clear();  // a source may have become known for a name met before
    met_.fill({});
    sources_version_ = version;
  }
  Met& met = met_[hash_mix(reinterpret_cast<std::uintptr_t>(mangled), 0) & (kMet - 1)];
  if (met.address == mangled && std::strcmp(met.known->first.c_str(), mangled) == 0) return met.known->second;
  auto found = names_.find(std::string_view(mangled));
  if (found == names_.end()) found = names_.emplace(mangled, learn(mangled)).first;
  met = {mangled, &*found};
  return found->second;
}

KernelName KernelNames::learn(const char* mangled) const {
  const auto frame_of = [](KernelSource source) {
    return KernelFrame{leadline_monitor_new_frame(), std::move(source.detail), std::move(source.file), source.line};
  };
  KernelName name;
  name.text = demangle(mangled);
  KernelSource source;
  if (const std::string_view collective = collective_of(name.text); !collective.empty()) {
    name.collective = true;
    source.detail = "{\"collective\": \"" + std::string(collective) + "\"}";
  }
  sources_.find(mangled, &source);
  name.frame = frame_of(std::move(source));
  std::vector<KernelSources::User> users = sources_.users(mangled);
  if (users.size() < 2) return name;  // nothing to tell apart
  for (KernelSources::User& user : users) {
    name.users.emplace_back(std::move(user.file), frame_of(std::move(user.source)));
  }
  return name;
}

}  // namespace leadline::gpu
