#include "providers/nvidia/nvtx_names.h"

#include <pthread.h>
#include <strings.h>

#include <algorithm>
#include <memory>

#include "base/hash.h"

namespace leadline::nvidia {

std::string_view NvtxDomain::category(std::uint32_t id) const noexcept {
  for (const Category* each = categories_.load(std::memory_order_acquire); each; each = each->next) {
    if (each->id == id) return each->name;
  }
  return {};
}

NvtxNames& NvtxNames::instance() {
  static NvtxNames& made = *new NvtxNames;
  return made;
}

NvtxNames::NvtxNames() {
  pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                 [] { instance().mutex_.unlock(); });
}

bool NvtxNames::is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& each) { return strcasecmp(each.c_str(), name.c_str()) == 0; });
}

NvtxDomain* NvtxNames::create_domain(std::string name) {
  const std::lock_guard lock(mutex_);
  const auto known =
      std::find_if(domains_.begin(), domains_.end(), [&](const NvtxDomain* domain) { return domain->name() == name; });
  if (is_among(left_alone_, name)) return nullptr;
  if (known != domains_.end()) return *known;  // a program that makes one again and again stays bounded
  auto domain = std::make_unique<NvtxDomain>(std::move(name));
  domain->skipped = is_among(skipped_, domain->name());
  domains_.push_back(domain.get());
  return domain.release();
}

const char* NvtxNames::register_string(std::string text) {
  const std::lock_guard lock(mutex_);
  return strings_.insert(std::move(text)).first->c_str();
}

void NvtxNames::name_category(NvtxDomain& domain, std::uint32_t id, std::string name) {
  const std::lock_guard lock(mutex_);
  if (domain.category(id) == name) return;
  // The newest is found first; the older one may be in use.
  const NvtxDomain::Category* rest = domain.categories_.load(std::memory_order_relaxed);
  domain.categories_.store(new NvtxDomain::Category{id, std::move(name), rest}, std::memory_order_release);
}

void NvtxNames::skip(const std::vector<std::string>& names, const std::vector<std::string>& left_alone) {
  const std::lock_guard lock(mutex_);
  skipped_ = names;
  left_alone_ = left_alone;
  for (NvtxDomain* domain : domains_) {
    domain->skipped = is_among(names, domain->name()) || is_among(left_alone, domain->name());
    domain->titles = !is_among(left_alone, domain->name());
  }
}

bool NvtxNames::payload_varies(const NvtxDomain& domain, std::string_view range, std::uint64_t payload) noexcept {
  const std::uint64_t hash =
      hash_mix(hash_bytes(range.data(), range.size()), reinterpret_cast<std::uintptr_t>(&domain)) | 1;
  constexpr std::size_t kProbes = 16;
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    Payloads& slot = payloads_[((hash >> 1) + probe) & (kRanges - 1)];
    std::uint64_t found = slot.range.load(std::memory_order_relaxed);
    if (found == 0 && slot.range.compare_exchange_strong(found, hash, std::memory_order_relaxed)) found = hash;
    if (found != hash) continue;
    const std::uint32_t written = slot.written.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < kMostPayloads; ++i) {
      if ((written >> i & 1) != 0 && slot.values[i].load(std::memory_order_relaxed) == payload) return false;
    }
    if (slot.taken.load(std::memory_order_relaxed) >= kMostPayloads) return true;
    const std::uint32_t mine = slot.taken.fetch_add(1, std::memory_order_relaxed);
    if (mine >= kMostPayloads) return true;
    slot.values[mine].store(payload, std::memory_order_relaxed);
    slot.written.fetch_or(1u << mine, std::memory_order_release);
    return false;
  }
  return true;
}

}  // namespace leadline::nvidia
