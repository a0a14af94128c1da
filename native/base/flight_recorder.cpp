#include "base/flight_recorder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/clock.h"

namespace leadline {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr std::uint64_t kBusy = ~std::uint64_t{0};
static_assert(sizeof(FlightRecorder::Header) <= 4096);
static_assert(sizeof(FlightRecorder::Group) == 144 && sizeof(FlightRecorder::Entry) == 112);

template <std::size_t kSize>
void copy(char (&to)[kSize], std::string_view text) noexcept {
  const std::size_t length = std::min(text.size(), kSize - 1);
  std::memcpy(to, text.data(), length);
  std::memset(to + length, 0, kSize - length);
}

struct Announced {
  char name[48];
  char description[48];
  FlightRecorder::Where where;
  std::uint64_t number;
  bool waits;
};
thread_local Announced t_announced{};

std::uint64_t key_of(std::string_view text) noexcept {  // FNV-1a
  std::uint64_t key = 0xcbf29ce484222325;
  for (const char letter : text) key = (key ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return key == 0 ? 1 : key;
}

// Those of the file before, which other threads may still be counting in.
void take_groups(const FlightRecorder::Group* from, FlightRecorder::Group* to) noexcept {
  for (std::uint32_t row = 0; row < FlightRecorder::kGroups; ++row) {
    const std::uint64_t key = from[row].key.load(std::memory_order_acquire);
    if (key == 0) continue;
    to[row].begun.store(from[row].begun.load(kRelaxed), kRelaxed);
    to[row].done.store(from[row].done.load(kRelaxed), kRelaxed);
    to[row].told.store(from[row].told.load(kRelaxed), kRelaxed);
    to[row].since = from[row].since;
    to[row].size = from[row].size;
    to[row].rank = from[row].rank;
    copy(to[row].name, from[row].name);
    copy(to[row].description, from[row].description);
    to[row].key.store(key, kRelaxed);
  }
}

}  // namespace

void FlightRecorder::set_path(std::string_view path) noexcept {
  wanted_.store(false, std::memory_order_release);
  char* const last = file_.exchange(nullptr, std::memory_order_acq_rel);
  if (last != nullptr) {
    if (before_ != nullptr) munmap(before_, kBytes);
    before_ = last;
  }
  if (path.empty() || path.size() >= sizeof path_) return;
  copy(path_, path);
  wanted_.store(true, std::memory_order_release);
}

char* FlightRecorder::opened() noexcept {
  char* const file = this->file();
  if (file != nullptr) return file;
  return wanted_.exchange(false, std::memory_order_acq_rel) ? make() : nullptr;
}

char* FlightRecorder::make() noexcept {
  const int descriptor = ::open(path_, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor < 0) return nullptr;
  void* mapped = MAP_FAILED;
  // Blocks are taken now: a full disk would end the program by SIGBUS later.
  if (posix_fallocate(descriptor, 0, kBytes) == 0)
    mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  if (mapped == MAP_FAILED) {
    unlink(path_);
    return nullptr;
  }
  auto* const header = static_cast<Header*>(mapped);
  header->entries = kEntries;
  header->groups = kGroups;
  header->pid = static_cast<std::uint32_t>(getpid());
  header->monotonic_ns = now_ns();
  header->realtime_ns = realtime_ns();
  if (before_ != nullptr) take_groups(groups_of(before_), groups_of(static_cast<char*>(mapped)));
  std::memcpy(header->magic, kMagic, sizeof kMagic);
  file_.store(static_cast<char*>(mapped), std::memory_order_release);
  return static_cast<char*>(mapped);
}

FlightRecorder::Entry* FlightRecorder::entry(std::uint64_t number) const noexcept {
  char* const file = this->file();
  if (file == nullptr || number == 0) return nullptr;
  Entry* const found = entries_of(file) + number % kEntries;
  return found->number.load(std::memory_order_acquire) == number ? found : nullptr;
}

void FlightRecorder::announce(const Where& where) noexcept {
  Announced& own = t_announced;
  copy(own.name, where.group);
  copy(own.description, where.description);
  own.where = where;
  own.where.group = own.name;
  own.where.description = own.description;
  own.where.collective = {};
  own.number = 0;
  own.waits = true;
}

std::uint64_t FlightRecorder::announced(std::uint64_t told) noexcept {
  t_announced.waits = false;
  const std::uint64_t number = std::exchange(t_announced.number, 0);
  const Entry* const found = entry(number);
  if (found != nullptr && found->sequence.load(kRelaxed) != 0)
    groups_of(file())[found->group.load(kRelaxed)].told.store(told, kRelaxed);
  return number;
}

void FlightRecorder::set_usual(const Where& where) noexcept {
  // Never given back: another thread may be reading it, and a process has few groups.
  auto* const named = where.group.empty() ? nullptr : new (std::nothrow) Named{};
  if (named != nullptr) {
    copy(named->name, where.group);
    copy(named->description, where.description);
    named->size = where.size;
    named->rank = where.rank;
    named->since = where.since;
  }
  usual_.store(named, std::memory_order_release);
}

std::uint64_t FlightRecorder::begin(std::string_view collective) noexcept {
  char* const file = opened();
  if (file == nullptr) return 0;
  const std::uint64_t number = reinterpret_cast<Header*>(file)->begun.fetch_add(1, kRelaxed) + 1;
  Entry& entry = entries_of(file)[number % kEntries];
  // Another thread may still be writing what it began a whole ring ago: then this one is counted only.
  if (entry.number.exchange(kBusy, std::memory_order_acq_rel) == kBusy) return 0;
  entry.begin_ns = now_ns();
  entry.returned_ns.store(0, kRelaxed);
  entry.done_ns.store(0, kRelaxed);
  entry.tid = static_cast<std::uint64_t>(syscall(SYS_gettid));
  entry.sequence.store(0, kRelaxed);
  entry.group.store(0, kRelaxed);
  entry.elements = -1;
  copy(entry.collective, collective);
  entry.number.store(number, std::memory_order_release);
  if (t_announced.waits) {
    t_announced.waits = false;
    t_announced.number = number;
    describe(number, t_announced.where);
  } else if (const Named* const usual = usual_.load(std::memory_order_acquire)) {
    describe(number, {usual->name, usual->description, usual->size, usual->rank, -1, {}, usual->since});
  }
  return number;
}

void FlightRecorder::describe(std::uint64_t number, const Where& where) noexcept {
  Entry* const found = entry(number);
  char* const file = this->file();
  if (found == nullptr || file == nullptr) return;
  const std::uint32_t row = find_group(file, where);
  if (row == kGroups) return;
  std::uint64_t mine = number;
  if (!found->number.compare_exchange_strong(mine, kBusy, std::memory_order_acq_rel)) return;
  const bool again = found->sequence.load(kRelaxed) != 0;
  if (!again || found->group.load(kRelaxed) == row) {
    if (where.elements >= 0) found->elements = where.elements;
    if (!where.collective.empty()) copy(found->collective, where.collective);
  }
  if (!again) {
    found->group.store(row, kRelaxed);
    found->sequence.store(groups_of(file)[row].begun.fetch_add(1, kRelaxed) + 1, kRelaxed);
  }
  found->number.store(number, std::memory_order_release);
}

std::uint32_t FlightRecorder::find_group(char* file, const Where& where) noexcept {
  const std::uint64_t key = key_of(where.group);
  for (std::uint32_t row = 0; row < kGroups; ++row) {
    Group& group = groups_of(file)[row];
    std::uint64_t there = group.key.load(std::memory_order_acquire);
    if (there == 0 && group.key.compare_exchange_strong(there, key, std::memory_order_acq_rel)) {
      group.since = where.since != kNotSaid ? where.since : attached_.load(kRelaxed) ? kUnknown : 0;
      group.told.store(kUnknown, kRelaxed);
      group.size = where.size;
      group.rank = where.rank;
      copy(group.name, where.group);
      copy(group.description, where.description);
      return row;
    }
    if (there == key) return row;
  }
  return kGroups;
}

void FlightRecorder::returned(std::uint64_t number) noexcept {
  if (Entry* const found = entry(number)) found->returned_ns.store(now_ns(), kRelaxed);
}

void FlightRecorder::done(std::uint64_t number) noexcept {
  Entry* const found = entry(number);
  if (found == nullptr || found->done_ns.load(kRelaxed) != 0) return;
  found->done_ns.store(now_ns(), kRelaxed);
  char* const file = this->file();
  if (file != nullptr && found->sequence.load(kRelaxed) != 0)
    groups_of(file)[found->group.load(kRelaxed)].done.fetch_add(1, kRelaxed);
}

std::int64_t FlightRecorder::standing_ns() const noexcept {
  char* const file = this->file();
  if (file == nullptr) return 0;
  const Entry* const last = entry(reinterpret_cast<const Header*>(file)->begun.load(kRelaxed));
  const std::int64_t begin_ns = last != nullptr ? last->begin_ns : 0;
  if (begin_ns == 0) return 0;
  const Entry* const entries = entries_of(file);
  const bool open = std::any_of(entries, entries + kEntries, [](const Entry& one) {
    const std::uint64_t number = one.number.load(std::memory_order_acquire);
    return number != 0 && number != kBusy && one.done_ns.load(kRelaxed) == 0;
  });
  return open ? std::max<std::int64_t>(now_ns() - begin_ns, 0) : 0;
}

FlightRecorder& flight_recorder() noexcept {
  static FlightRecorder recorder;
  return recorder;
}

}  // namespace leadline
