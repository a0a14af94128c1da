// Scratch memory of queues: the part of FakeRocm behind the SDK's tracing of it.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <utility>

#include "testing/amd/fake_rocm.h"

namespace leadline::testing::rocm {

// As the driver's own thread tells it, which knows of no launch. Under the mutex.
void FakeRocm::keep_scratch(const Stream& stream, sdk::ScratchOperation operation, std::int64_t start,
                            std::uint64_t bytes) {
  if (!active || !buffered.contains(12)) return;
  sdk::ScratchRecord record{};
  record.size = scratch_sizes ? sizeof record : offsetof(sdk::ScratchRecord, bytes);
  record.kind = 12;
  record.operation = operation;
  record.agent = 100 + static_cast<std::uint64_t>(stream.device);
  record.queue = stream.id;
  record.start = static_cast<std::uint64_t>(start + kEpoch);
  record.end = static_cast<std::uint64_t>(start + kScratchNs + kEpoch);
  record.bytes = bytes;
  Record kept{12, std::vector<std::uint8_t>(sizeof record)};
  std::memcpy(kept.bytes.data(), &record, sizeof record);
  records_.push_back(std::move(kept));
}

void FakeRocm::take_scratch_back(Stream* stream, sdk::ScratchOperation operation) {
  const std::lock_guard lock(mutex);
  keep_scratch(*stream, operation, std::max(tick(0), stream->ready_ns), 0);
  stream->scratch = 0;
}

}  // namespace leadline::testing::rocm
