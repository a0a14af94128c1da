#include "testing/nvidia/fake_buffers.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "testing/nvidia/fake_gpu.h"

namespace leadline::testing {

bool FakeBuffers::request(Buffer* buffer) {
  std::size_t most = 0;
  if (gpu_.requested_v2) {
    gpu_.requested_v2(&buffer->data, &buffer->size, &most, nullptr);
  } else if (gpu_.requested) {
    gpu_.requested(&buffer->data, &buffer->size, &most);
  }
  if (buffer->data != nullptr) {
    const auto is_zero = [](std::uint8_t byte) { return byte == 0; };
    if (wants_zeros && !std::all_of(buffer->data, buffer->data + buffer->size, is_zero)) ++dirty;
    return true;
  }
  ++refused;
  // CUPTI before 12.9 looks into what it was given.
  constexpr std::uint32_t kVersion12_9 = 27;
  if (gpu_.cupti_version < kVersion12_9) std::abort();
  return false;
}

bool FakeBuffers::is_complete(const Buffer& buffer) const {
  for (const auto& [size, end_ns] : buffer.records) {
    if (end_ns > gpu_.now_ns.load()) return false;
  }
  return true;
}

void FakeBuffers::append(const std::vector<std::uint8_t>& record, std::int64_t end_ns) {
  std::deque<Buffer>& mine = buffers_[std::this_thread::get_id()];
  const auto room = [&](const Buffer& buffer) {
    return buffer.used + record.size() <= buffer.size && (most_records == 0 || buffer.records.size() < most_records);
  };
  if (!mine.empty() && !room(mine.back())) mine.back().is_full = true;
  if (mine.empty() || mine.back().is_full) {
    Buffer fresh;
    if (!request(&fresh)) {
      ++gpu_.dropped;
      return;
    }
    mine.push_back(fresh);
  }
  Buffer& buffer = mine.back();
  std::memcpy(buffer.data + buffer.used, record.data(), record.size());
  buffer.used += record.size();
  buffer.records.emplace_back(record.size(), end_ns);
  // Those that are full come by themselves.
  while (mine.front().is_full && is_complete(mine.front())) {
    hand_over(mine.front(), INT64_MAX);
    mine.pop_front();
  }
}

void FakeBuffers::hand_over(Buffer& buffer, std::int64_t until_ns) {
  std::size_t read = 0, valid = 0;
  for (const auto& [size, end_ns] : buffer.records) {
    if (end_ns <= until_ns) {
      std::memmove(buffer.data + valid, buffer.data + read, size);
      valid += size;
    }
    read += size;
  }
  if (gpu_.completed_v2) {
    gpu_.completed_v2(buffer.data, buffer.size, valid, nullptr);
  } else if (gpu_.completed) {
    gpu_.completed(nullptr, 0, buffer.data, buffer.size, valid);
  }
}

void FakeBuffers::flush(bool forced) {
  for (auto& [thread, buffers] : buffers_) {
    std::deque<Buffer> left;
    for (Buffer& buffer : buffers) {
      if (kept_.size() < kept) {
        kept_.push_back(buffer);
      } else if (forced || is_complete(buffer)) {
        hand_over(buffer, gpu_.now_ns.load());
      } else {
        left.push_back(buffer);
      }
    }
    buffers.swap(left);
  }
}

std::size_t FakeBuffers::pending() const {
  std::size_t records = 0;
  for (const auto& [thread, buffers] : buffers_) {
    for (const Buffer& buffer : buffers) records += buffer.records.size();
  }
  return records;
}

void FakeBuffers::write_to_kept() {
  for (Buffer& buffer : kept_) std::memset(buffer.data, 0x5a, buffer.size);
}

void FakeBuffers::reset() {
  buffers_.clear();
  kept_.clear();
  kept = refused = dirty = most_records = 0;
  wants_zeros = false;
}

}  // namespace leadline::testing
