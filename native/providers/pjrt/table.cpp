#include "providers/pjrt/table.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>

#include "providers/pjrt/calls.h"

namespace leadline::pjrt {
namespace {

std::array<Followed, kMostTables> tables;

// How the page of an address is mapped, as PROT_ bits; -1 where it is not known.
int protection_of(const void* address) noexcept {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"), std::fclose);
  if (!maps) return -1;
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::array<char, 512> line{};
  bool at_begin = true;
  while (std::fgets(line.data(), line.size(), maps.get()) != nullptr) {
    const bool whole = std::strchr(line.data(), '\n') != nullptr;
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::array<char, 5> modes{};
    const bool read = at_begin && std::sscanf(line.data(), "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end,
                                              modes.data()) == 3;  // NOLINT(cert-err34-c): of the kernel
    at_begin = whole;
    if (!read || wanted < begin || wanted >= end) continue;
    return (modes[0] == 'r' ? PROT_READ : 0) | (modes[1] == 'w' ? PROT_WRITE : 0) | (modes[2] == 'x' ? PROT_EXEC : 0);
  }
  return -1;
}

// A table may lie in memory that is read only.
class Writable {
 public:
  Writable(void* begin, std::size_t bytes) noexcept : protection_(protection_of(begin)) {
    if (protection_ < 0 || (protection_ & PROT_WRITE) != 0) return;
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const std::uintptr_t from = reinterpret_cast<std::uintptr_t>(begin) & ~(page - 1);
    const std::uintptr_t until = (reinterpret_cast<std::uintptr_t>(begin) + bytes + page - 1) & ~(page - 1);
    begin_ = reinterpret_cast<void*>(from);
    bytes_ = until - from;
    changed_ = mprotect(begin_, bytes_, protection_ | PROT_WRITE) == 0;
  }
  ~Writable() {
    if (changed_) mprotect(begin_, bytes_, protection_);
  }
  Writable(const Writable&) = delete;
  Writable& operator=(const Writable&) = delete;
  explicit operator bool() const noexcept { return protection_ >= 0 && ((protection_ & PROT_WRITE) != 0 || changed_); }

 private:
  int protection_;
  void* begin_ = nullptr;
  std::size_t bytes_ = 0;
  bool changed_ = false;
};

std::size_t slots_of(const Table& table) noexcept {
  return table.struct_size <= offsetof(Table, slots) ? 0 : (table.struct_size - offsetof(Table, slots)) / sizeof(void*);
}

Followed* place_of(Table* table) noexcept {
  for (Followed& each : tables) {
    Table* const known = each.table.load(std::memory_order_relaxed);
    if (known == table || known == nullptr) return &each;
  }
  return nullptr;
}

}  // namespace

Followed& followed(std::size_t number) noexcept { return tables[number]; }

std::string follow(Table* table) {
  const std::size_t count = table == nullptr ? 0 : slots_of(*table);
  if (count <= kLoadedExecutableExecute)
    return "A plug-in of PJRT has a table without the calls that execute programs.";
  if (table->major != 0) {
    return "A plug-in of PJRT is of version " + std::to_string(table->major) +
           ", whose table is not known here; its calls are not followed.";
  }
  Followed* const place = place_of(table);
  if (place == nullptr) return "More plug-ins of PJRT than can be followed; the calls of the last are not.";
  if (place->replaced) return {};
  const Writable writable(table, table->struct_size);
  if (!writable) return "The table of a plug-in of PJRT cannot be written to, so its calls are not followed.";
  const auto number = static_cast<std::size_t>(place - tables.data());
  place->table.store(table, std::memory_order_relaxed);
  for (std::size_t slot = 0; slot < count && slot < kSlots; ++slot) {
    const Function ours = call_of(number, slot);
    const Function stood = __atomic_load_n(&table->slots[slot], __ATOMIC_ACQUIRE);
    // Found with ours below another tool's from before: what that one calls in the end is known already.
    if (place->original[slot].load(std::memory_order_relaxed) == nullptr && stood != ours) {
      place->original[slot].store(stood, std::memory_order_release);
    }
    const bool can = ours != nullptr && stood == place->original[slot].load(std::memory_order_relaxed);
    if (can && stood != nullptr) __atomic_store_n(&table->slots[slot], ours, __ATOMIC_RELEASE);
  }
  place->replaced = true;
  return {};
}

void put_back_all() noexcept {
  for (std::size_t number = 0; number < kMostTables; ++number) {
    Followed& each = tables[number];
    Table* const table = each.table.load(std::memory_order_relaxed);
    if (!each.replaced || table == nullptr) continue;
    each.replaced = false;
    const Writable writable(table, table->struct_size);
    if (!writable) continue;
    const std::size_t count = slots_of(*table);
    for (std::size_t slot = 0; slot < count && slot < kSlots; ++slot) {
      Function ours = call_of(number, slot);
      if (ours == nullptr) continue;
      __atomic_compare_exchange_n(&table->slots[slot], &ours, each.original[slot].load(std::memory_order_relaxed),
                                  false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    }
  }
}

}  // namespace leadline::pjrt
