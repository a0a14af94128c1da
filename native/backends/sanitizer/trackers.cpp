#include "backends/sanitizer/trackers.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>

#include "backends/device/raw_stream.h"

namespace leadline::sanitizer {
namespace {

constexpr std::size_t kLeastRanges = 1024;
constexpr std::size_t kLeastWords = 1024;
constexpr std::size_t kLine = 128;
constexpr std::size_t rounded(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }
constexpr std::size_t kSetupRoom = rounded(sizeof(device::Setup));
constexpr std::size_t kResultRoom = rounded(sizeof(device::Result));
constexpr std::size_t kTrackerRoom = rounded(sizeof(device::Tracker));

// Distinct pages of `factor` small ones each; the bits are in ascending order.
std::uint64_t larger_pages(const std::uint32_t* words, std::uint32_t count, std::uint64_t first_page,
                           std::uint64_t factor) noexcept {
  std::uint64_t pages = 0;
  std::uint64_t last = UINT64_MAX;
  for (std::uint32_t word = 0; word < count; ++word) {
    for (std::uint32_t bits = words[word]; bits != 0; bits &= bits - 1) {
      const std::uint64_t page =
          (first_page + std::uint64_t{word} * 32 + static_cast<unsigned>(std::countr_zero(bits))) / factor;
      pages += page != last ? 1 : 0;
      last = page;
    }
  }
  return pages;
}

}  // namespace

Trackers::Trackers(const abi::Functions& functions, abi::Context context, const Shape& shape, ObjectTable& objects,
                   Outlets& out, LostCounts& lost)
    : functions_(functions), context_(context), shape_(shape), objects_(objects), out_(out), lost_(lost) {
  // The last one given back is taken first: it most likely holds the newest table.
  const std::size_t count = shape_.raw_room == 0 ? kCount : 1;
  for (std::size_t i = 0; i < count; ++i) free_[free_count_++] = &slots_[i];
  device_memory_.reserve(64 * kCount);
  pinned_memory_.reserve(64 * kCount);
}

Trackers::Slot* Trackers::take() noexcept {
  const std::lock_guard lock(free_lock_);
  if (free_count_ == 0) return nullptr;
  Slot* const slot = free_[--free_count_];
  slot->state.store(State::kTaken, std::memory_order_relaxed);
  return slot;
}

// Where streams are analysed on the host a launch waits for the one before, as tools that do so have it.
Trackers::Slot* Trackers::wait_for_the_one() noexcept {
  constexpr auto kPatience = std::chrono::seconds(20);
  constexpr auto kLook = std::chrono::microseconds(20);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  Slot* slot = take();
  while (slot == nullptr && !gone() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kLook);
    slot = take();
  }
  return slot;
}

void Trackers::give_back(Slot* slot) noexcept {
  const std::lock_guard lock(free_lock_);
  slot->state.store(State::kFree, std::memory_order_relaxed);
  free_[free_count_++] = slot;
}

void* Trackers::on_device(std::size_t bytes) noexcept {
  void* memory = nullptr;
  if (functions_.alloc(context_, &memory, bytes) != abi::kSuccess) return nullptr;
  const std::lock_guard lock(memory_lock_);
  if (device_memory_.size() < device_memory_.capacity()) device_memory_.push_back(memory);
  return memory;
}

void* Trackers::pinned(std::size_t bytes) noexcept {
  void* memory = nullptr;
  if (functions_.alloc_host(context_, &memory, bytes) != abi::kSuccess) return nullptr;
  const std::lock_guard lock(memory_lock_);
  if (pinned_memory_.size() < pinned_memory_.capacity()) pinned_memory_.push_back(memory);
  return memory;
}

bool Trackers::first_memory(Slot* slot) noexcept {
  if (slot->tracker != nullptr) return true;
  const bool instructions = (shape_.want & device::kWantInstructions) != 0;
  const std::size_t instruction_bytes = instructions ? kMostInstructions * sizeof(device::Instruction) : 0;
  const std::size_t block_bytes = room_of_blocks();
  const std::size_t row_bytes = kMostRows * sizeof(device::Row);
  auto* const fixed = static_cast<std::byte*>(pinned(kSetupRoom + kResultRoom + row_bytes + instruction_bytes));
  if (fixed == nullptr) return false;
  auto* const memory = static_cast<std::byte*>(on_device(kTrackerRoom + instruction_bytes + block_bytes));
  if (memory == nullptr) return false;
  slot->setup = reinterpret_cast<device::Setup*>(fixed);
  slot->result = reinterpret_cast<device::Result*>(fixed + kSetupRoom);
  slot->rows = reinterpret_cast<device::Row*>(fixed + kSetupRoom + kResultRoom);
  if (instructions) {
    slot->result_instructions = reinterpret_cast<device::Instruction*>(fixed + kSetupRoom + kResultRoom + row_bytes);
    slot->instructions = reinterpret_cast<device::Instruction*>(memory + kTrackerRoom);
  }
  if (shape_.raw_room != 0) {
    slot->raw = static_cast<device::RawAccess*>(pinned(shape_.raw_room * sizeof(device::RawAccess)));
    if (slot->raw == nullptr) return false;
  }
  if (block_bytes != 0) slot->blocks = reinterpret_cast<device::Block*>(memory + kTrackerRoom + instruction_bytes);
  std::memset(slot->result, 0, kResultRoom);
  slot->tracker = reinterpret_cast<device::Tracker*>(memory);
  slot->dirty = true;
  return true;
}

std::size_t Trackers::room_of_blocks() const noexcept {
  return (shape_.want & device::kWantBarriers) != 0 ? kMostBlocks * sizeof(device::Block) : 0;
}

Trackers::Layout Trackers::layout(std::size_t ranges, std::size_t words) noexcept {
  Layout at{};
  at.sums = ranges * sizeof(device::Range);
  at.touched = at.sums + ranges * sizeof(device::Sums);
  at.words = at.touched + ranges * sizeof(std::uint32_t);
  at.bytes = at.words + words * sizeof(std::uint32_t);
  return at;
}

// What was there before stays until the end: giving it back might wait for the device.
bool Trackers::grow(Slot* slot, std::size_t ranges, std::size_t words) noexcept {
  if (slot->tables != nullptr && ranges <= slot->range_room && words <= slot->word_room) return true;
  const std::size_t range_room = std::max({kLeastRanges, std::bit_ceil(ranges), slot->range_room});
  const std::size_t word_room = std::max({kLeastWords, std::bit_ceil(words), slot->word_room});
  const Layout at = layout(range_room, word_room);
  auto* const memory = static_cast<std::byte*>(on_device(at.bytes));
  if (memory == nullptr) return false;
  const std::size_t word_bytes = shape_.words ? word_room * sizeof(std::uint32_t) : 0;
  auto* const host = static_cast<std::byte*>(pinned(range_room * sizeof(device::Range) + word_bytes));
  if (host == nullptr) return false;
  try {
    slot->offsets.resize(range_room);
  } catch (...) {
    return false;
  }
  slot->tables = memory;
  slot->table_bytes = at.bytes;
  slot->pinned_tables = host;
  slot->staged = reinterpret_cast<device::Range*>(host);
  slot->words = shape_.words ? reinterpret_cast<std::uint32_t*>(host + range_room * sizeof(device::Range)) : nullptr;
  slot->range_room = range_room;
  slot->word_room = word_room;
  slot->epoch = 0;
  slot->dirty = true;
  return true;
}

// Ranges of the newest epoch, and memory that is clear, in the order of the stream.
bool Trackers::upload(Slot* slot, abi::StreamHandle order, Lost* why) noexcept {
  *why = Lost::kNoMemory;
  if (!first_memory(slot)) return false;
  constexpr int kAttempts = 5;  // other threads allocate meanwhile
  bool fits = slot->epoch == objects_.epoch();
  bool changed = false;
  for (int attempt = 0; attempt < kAttempts && !fits; ++attempt) {
    std::uint64_t words = 0;
    std::uint64_t epoch = 0;
    const std::size_t count = objects_.copy(slot->range_room, &epoch, [&](std::size_t i, const Range& range) {
      const auto first_word = static_cast<std::uint32_t>(words);
      slot->staged[i] = {range.begin, range.end, range.object, first_word, shape_.element, 0};
      slot->offsets[i] = range.begin - range.origin;
      words += device::words_for(range.end - range.begin, shape_.page_shift);
    });
    if (words > UINT32_MAX) return false;
    fits = slot->tables != nullptr && count <= slot->range_room && words <= slot->word_room;
    if (!fits && !grow(slot, std::max<std::size_t>(count, 1), words)) return false;
    if (!fits) continue;
    slot->ranges = count;
    slot->epoch = epoch;
    changed = true;
  }
  if (!fits) return false;
  *why = Lost::kRefused;
  const std::size_t instruction_bytes =
      slot->instructions == nullptr ? 0 : kMostInstructions * sizeof(device::Instruction);
  if (slot->dirty) {
    const Layout at = layout(slot->range_room, slot->word_room);
    if (functions_.memset(slot->tracker, 0, kTrackerRoom + instruction_bytes + room_of_blocks(), order) !=
            abi::kSuccess ||
        functions_.memset(slot->tables + at.sums, 0, at.bytes - at.sums, order) != abi::kSuccess) {
      slot->epoch = 0;
      return false;
    }
    slot->dirty = false;
    changed = true;
  }
  if (!changed || slot->ranges == 0) return true;
  if (functions_.copy_to_device(slot->tables, slot->staged, slot->ranges * sizeof(device::Range), order) ==
      abi::kSuccess) {
    return true;
  }
  slot->epoch = 0;
  return false;
}

bool Trackers::begin(const Flight& flight, const abi::LaunchData& launch, abi::StreamHandle order, Lost* why) noexcept {
  *why = Lost::kNoTracker;
  Slot* const slot = shape_.raw_room == 0 ? take() : wait_for_the_one();
  if (slot == nullptr) return false;
  if (!upload(slot, order, why)) {
    give_back(slot);
    return false;
  }
  const Layout at = layout(slot->range_room, slot->word_room);
  slot->flight = flight;
  slot->token = next_token_.fetch_add(1, std::memory_order_relaxed);
  device::Setup& setup = *slot->setup;
  setup = {};
  setup.version = device::kVersion;
  setup.range_count = static_cast<std::uint32_t>(slot->ranges);
  setup.page_shift = shape_.page_shift;
  setup.want = shape_.want | (slot->raw == nullptr ? 0U : std::uint32_t{device::kWantRaw});
  setup.ranges = reinterpret_cast<const device::Range*>(slot->tables);
  setup.sums = reinterpret_cast<device::Sums*>(slot->tables + at.sums);
  setup.touched = reinterpret_cast<device::u32*>(slot->tables + at.touched);
  setup.page_words = reinterpret_cast<device::u32*>(slot->tables + at.words);
  setup.launch = slot->token;
  setup.threads_expected = flight.threads;
  setup.instructions = slot->instructions;
  setup.instruction_room = slot->instructions == nullptr ? 0 : kMostInstructions;
  setup.row_room = kMostRows;
  setup.word_room = slot->words == nullptr ? 0 : static_cast<std::uint32_t>(slot->word_room);
  setup.result_instruction_room = setup.instruction_room;
  setup.result = slot->result;
  setup.rows = slot->rows;
  setup.words = slot->words;
  setup.result_instructions = slot->result_instructions;
  setup.raw = slot->raw;
  setup.raw_room = slot->raw == nullptr ? 0 : shape_.raw_room;
  setup.blocks = slot->blocks;
  setup.block_room = slot->blocks == nullptr ? 0 : kMostBlocks;
  slot->state.store(State::kUnderWay, std::memory_order_release);
  under_way_.fetch_add(1, std::memory_order_acq_rel);
  if (functions_.copy_to_device(slot->tracker, slot->setup, sizeof(device::Setup), order) == abi::kSuccess &&
      functions_.set_launch_callback_data(launch.launch, launch.function, launch.stream_handle, slot->tracker) ==
          abi::kSuccess) {
    return true;
  }
  *why = Lost::kRefused;
  State expected = State::kUnderWay;
  if (slot->state.compare_exchange_strong(expected, State::kTaken)) {
    under_way_.fetch_sub(1, std::memory_order_acq_rel);
    slot->dirty = true;
    give_back(slot);
  }
  return false;
}

bool Trackers::complete(const Slot& slot) noexcept {
  return std::atomic_ref(slot.result->complete).load(std::memory_order_acquire) == slot.token;
}

void Trackers::drop(Slot* slot, Lost why) noexcept {
  lost_.add(why);
  slot->dirty = true;
  under_way_.fetch_sub(1, std::memory_order_acq_rel);
  give_back(slot);
}

// A stream runs one launch after the other: where a later one is complete, an earlier one that is not will never be.
void Trackers::harvest() noexcept {
  if (gone()) return;
  std::array<Slot*, kCount> ended{};
  std::size_t count = 0;
  for (Slot& slot : slots_) {
    if (slot.state.load(std::memory_order_acquire) == State::kUnderWay && complete(slot)) ended[count++] = &slot;
  }
  std::sort(ended.begin(), ended.begin() + count, [](const Slot* a, const Slot* b) { return a->token < b->token; });
  for (std::size_t i = 0; i < count; ++i) {
    const Flight done = ended[i]->flight;
    const std::uint64_t token = ended[i]->token;
    tell(*ended[i]);
    under_way_.fetch_sub(1, std::memory_order_acq_rel);
    give_back(ended[i]);
    for (Slot& other : slots_) {
      if (other.state.load(std::memory_order_acquire) != State::kUnderWay) continue;
      const bool before = other.flight.stream == done.stream && other.token < token &&
                          (done.group == 0 || other.flight.group != done.group);
      if (before && !complete(other)) drop(&other, Lost::kNeverCompleted);
    }
  }
}

void Trackers::tell(const Slot& slot) noexcept {
  const device::Result& result = *slot.result;
  for (std::uint32_t i = 0; i < std::min(result.rows, kMostRows); ++i)
    tell_row(slot, slot.rows[i], slot.words, slot.word_room);
  if (slot.raw != nullptr) tell_stream(slot);
  const Flight& flight = slot.flight;
  if (!out_.done.put({flight.launch, result.threads})) lost_.add(Lost::kOut);
  lost_.add(Lost::kRows, result.lost_rows);
  lost_.add(Lost::kOutside, result.totals.outside);
  lost_.add(Lost::kTma, result.totals.points[device::kTma].threads);
  if (slot.result_instructions == nullptr) return;
  lost_.add(Lost::kInstructions, result.lost_instructions);
  lost_.add(Lost::kInstructions, result.totals.lost_instructions);
  lost_.add(Lost::kArrivals, result.totals.lost_arrivals);
  for (std::uint32_t i = 0; i < std::min(result.instructions, kMostInstructions); ++i) {
    const device::Instruction& one = slot.result_instructions[i];
    const InstructionRow row{flight.launch, flight.place, one.pc - flight.function_pc,
                             one.warps,     one.threads,  one.split,
                             one.conflicts, one.bytes,    one.meetings,
                             one.waited,    flight.name,  one.point};
    if (!out_.instructions.put(row)) lost_.add(Lost::kOut);
  }
}

void Trackers::tell_stream(const Slot& slot) noexcept {
  const std::uint64_t kept = std::min<std::uint64_t>(slot.result->raw, shape_.raw_room);
  lost_.add(Lost::kRaw, slot.result->raw - kept);
  try {
    const device::Analysed found = device::analyse(slot.raw, kept, slot.staged, slot.ranges, shape_.page_shift);
    for (const device::Row& row : found.rows) tell_row(slot, row, found.words.data(), found.words.size());
    lost_.add(Lost::kOutside, found.outside);
  } catch (const std::bad_alloc&) {
    lost_.add(Lost::kNoMemory);
  }
}

void Trackers::tell_row(const Slot& slot, const device::Row& row, const std::uint32_t* words,
                        std::size_t room) noexcept {
  const std::uint64_t offset = row.range < slot.ranges ? slot.offsets[row.range] : 0;
  TouchedRow told{.launch = slot.flight.launch,
                  .time_ns = slot.flight.time_ns,
                  .place = slot.flight.place,
                  .first = offset + row.least,
                  .end = offset + row.most,
                  .reads = row.reads,
                  .writes = row.writes,
                  .atomics = row.atomics,
                  .read_bytes = row.read_bytes,
                  .written_bytes = row.written_bytes,
                  .atomic_bytes = row.atomic_bytes,
                  .nan = row.nan,
                  .inf = row.inf,
                  .counted = row.counted,
                  .pages = {row.pages, 0, 0, 0},
                  .object = row.object,
                  .unused = 0};
  const bool bits = words != nullptr && row.first_word + row.word_count <= room;
  for (std::size_t i = 0; i < kPageSizes && shape_.page_sizes[i] != 0; ++i) {
    const std::uint64_t size = shape_.page_sizes[i];
    if (size == std::uint64_t{1} << shape_.page_shift) {
      told.pages[i] = row.pages;
    } else if (bits) {
      told.pages[i] = larger_pages(words + row.first_word, row.word_count, row.first_page, size >> shape_.page_shift);
    }
  }
  if (!out_.touched.put(told)) lost_.add(Lost::kOut);
}

void Trackers::abandon(Lost why) noexcept {
  if (gone_.exchange(true, std::memory_order_acq_rel)) return;
  for (Slot& slot : slots_) {
    State expected = State::kUnderWay;
    if (!slot.state.compare_exchange_strong(expected, State::kTaken)) continue;
    under_way_.fetch_sub(1, std::memory_order_acq_rel);
    lost_.add(why);
  }
}

void Trackers::free_all() noexcept {
  for (void* memory : device_memory_) functions_.free(context_, memory);
  for (void* memory : pinned_memory_) functions_.free_host(context_, memory);
  device_memory_.clear();
  pinned_memory_.clear();
  gone_.store(true, std::memory_order_release);
}

}  // namespace leadline::sanitizer
