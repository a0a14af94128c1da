#include "unwind/rule_cache.h"

#include <link.h>
#include <sys/mman.h>

#include <bit>
#include <cstddef>

#include "unwind/eh_frame.h"
#include "unwind/walk.h"

namespace leadline::unwind {
namespace {

constexpr size_t kEntries = 1u << 17;  // 2 MiB of addresses, of which only those that are used take memory
constexpr size_t kMostUsed = kEntries / 4 * 3;
constexpr size_t kProbes = 16;
constexpr uint64_t kReady = 1u << 7;  // in the byte of the kind

struct Entry {
  std::atomic<uint64_t> pc;
  std::atomic<uint64_t> rule;
};
struct Table {
  Entry entries[kEntries];
  std::atomic<uint64_t> used;
};

std::atomic<Table*> g_table{nullptr};
std::atomic<Table*> g_before{nullptr};  // the table that it took the place of
std::atomic<uint64_t> g_renewals{0};
std::atomic<uint64_t> g_changes{0};  // loads and unloads of libraries that the table knows of

uint64_t packed(const Rule& rule) noexcept { return std::bit_cast<uint64_t>(rule) | kReady; }
Rule unpacked(uint64_t bits) noexcept { return std::bit_cast<Rule>(bits & ~kReady); }

Rule computed(uintptr_t pc) noexcept {
  Sections sections;
  return find_sections(pc, &sections) ? find_rule(pc, sections) : Rule{};
}

// Its addresses are never given back: somebody may be reading it. Mapped, so that what is not used costs nothing.
Table* new_table() noexcept {
  void* const memory = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Table*>(memory);
}

}  // namespace

uint64_t library_changes() noexcept {
  uint64_t changes = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        *static_cast<uint64_t*>(to) = info->dlpi_adds + info->dlpi_subs;
        return 1;
      },
      &changes);
  return changes;
}

Rule rule_at(uintptr_t pc) noexcept {
  Table* const table = g_table.load(std::memory_order_acquire);
  if (table == nullptr) return computed(pc);
  size_t slot = (pc ^ pc >> 13) * 0x9E3779B97F4A7C15u >> 47;
  static_assert(kEntries == size_t{1} << (64 - 47));
  for (size_t probe = 0; probe < kProbes; ++probe, slot = (slot + 1) & (kEntries - 1)) {
    Entry& entry = table->entries[slot];
    uint64_t known = entry.pc.load(std::memory_order_acquire);
    if (known == 0) {
      if (table->used.load(std::memory_order_relaxed) >= kMostUsed || g_table.load(std::memory_order_relaxed) != table)
        break;
      if (entry.pc.compare_exchange_strong(known, pc, std::memory_order_acq_rel)) {
        table->used.fetch_add(1, std::memory_order_relaxed);
        const Rule rule = computed(pc);
        entry.rule.store(packed(rule), std::memory_order_release);
        return rule;
      }
    }
    if (known != pc) continue;
    const uint64_t bits = entry.rule.load(std::memory_order_acquire);
    return bits != 0 ? unpacked(bits) : computed(pc);  // whoever claimed it is still at it
  }
  return computed(pc);
}

void renew() noexcept {
  const uint64_t changes = library_changes();
  Table* const before = g_table.load(std::memory_order_acquire);
  const bool full = before != nullptr && before->used.load(std::memory_order_relaxed) >= kMostUsed;
  if (before != nullptr && !full && changes == g_changes.load(std::memory_order_relaxed)) return;
  Table* const table = new_table();
  if (table == nullptr) return;
  g_changes.store(changes, std::memory_order_relaxed);
  g_table.store(table, std::memory_order_release);
  // To whoever still reads the one before that it is empty: he computes.
  if (Table* const old = g_before.exchange(before, std::memory_order_relaxed); old != nullptr)
    madvise(old, sizeof(Table), MADV_DONTNEED);
  g_renewals.fetch_add(1, std::memory_order_release);
}

uint64_t renewals() noexcept { return g_renewals.load(std::memory_order_acquire); }

bool available() noexcept {
#ifdef __x86_64__
  Sections sections;
  const bool found = find_sections(reinterpret_cast<uintptr_t>(&available), &sections);
#else
  const bool found = true;  // libgcc's unwinder
#endif
  stack_end(0, true);  // what it looks up once is looked up now
  if (found) renew();
  return found;
}

uint64_t rules_known() noexcept {
  const Table* const table = g_table.load(std::memory_order_acquire);
  return table == nullptr ? 0 : table->used.load(std::memory_order_relaxed);
}

}  // namespace leadline::unwind
