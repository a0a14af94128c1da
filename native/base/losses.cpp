#include "base/losses.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/hash.h"

namespace leadline {

namespace {

// A cut falls between characters of UTF-8.
std::size_t kept_of(std::string_view detail) noexcept {
  std::size_t size = std::min(detail.size(), LossCounters::kDetailBytes);
  while (size < detail.size() && size > 0 && (static_cast<unsigned char>(detail[size]) & 0xC0) == 0x80) --size;
  return size;
}

}  // namespace

void LossCounters::count(LossKind kind, std::uint64_t times, std::string_view detail) noexcept {
  const auto number = static_cast<std::size_t>(kind);
  if (number >= kLossKindCount || times == 0) return;
  Counter& counter = counters_[number];
  const std::size_t size = kept_of(detail);
  if (size == 0) {
    counter.without.fetch_add(times, std::memory_order_relaxed);
    return;
  }
  const std::uint64_t key = hash_bytes(detail.data(), size) | 1;
  for (Sentence& sentence : counter.sentences) {
    std::uint64_t known = sentence.key.load(std::memory_order_relaxed);
    if (known == 0 && sentence.key.compare_exchange_strong(known, key, std::memory_order_relaxed)) {
      std::memcpy(sentence.text.data(), detail.data(), size);
      sentence.size.store(static_cast<std::uint16_t>(size), std::memory_order_release);
      known = key;
    }
    if (known == key) {
      sentence.count.fetch_add(times, std::memory_order_relaxed);
      return;
    }
  }
  counter.others.fetch_add(times, std::memory_order_relaxed);
}

std::uint64_t LossCounters::total(LossKind kind) const noexcept {
  const Counter& counter = counters_[static_cast<std::size_t>(kind)];
  std::uint64_t sum = counter.without.load(std::memory_order_relaxed) + counter.others.load(std::memory_order_relaxed);
  for (const Sentence& sentence : counter.sentences) sum += sentence.count.load(std::memory_order_relaxed);
  return sum;
}

std::string LossCounters::Sentence::read() const { return {text.data(), size.load(std::memory_order_acquire)}; }

std::string LossCounters::detail(LossKind kind) const {
  return counters_[static_cast<std::size_t>(kind)].sentences.front().read();
}

std::vector<LossCounters::Told> LossCounters::told(LossKind kind) const {
  const Counter& counter = counters_[static_cast<std::size_t>(kind)];
  std::vector<Told> all;
  std::uint64_t without = counter.without.load(std::memory_order_relaxed);
  for (const Sentence& sentence : counter.sentences) {
    const std::uint64_t count = sentence.count.load(std::memory_order_relaxed);
    if (count == 0) continue;
    std::string text = sentence.read();
    if (text.empty()) {  // another thread is just writing it
      without += count;
    } else {
      Told& next = all.emplace_back();
      next.sentence = std::move(text);
      next.count = count;
    }
  }
  if (without > 0) all.emplace_back().count = without;
  if (const std::uint64_t others = counter.others.load(std::memory_order_relaxed); others > 0) {
    Told& last = all.emplace_back();
    last.sentence = kOthers;
    last.count = others;
  }
  return all;
}

void LossCounters::clear() noexcept {
  for (Counter& counter : counters_) {
    counter.without.store(0, std::memory_order_relaxed);
    counter.others.store(0, std::memory_order_relaxed);
    for (Sentence& sentence : counter.sentences) {
      if (sentence.key.load(std::memory_order_relaxed) == 0) break;  // pages that nobody wrote to stay so
      sentence.size.store(0, std::memory_order_relaxed);
      sentence.count.store(0, std::memory_order_relaxed);
      sentence.key.store(0, std::memory_order_relaxed);
    }
  }
}

LossCounters& losses() noexcept {
  static constinit LossCounters counters;
  return counters;
}

}  // namespace leadline
