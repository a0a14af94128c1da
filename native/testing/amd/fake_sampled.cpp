// Samples of instructions: the part of FakeRocm behind the SDK's sampling service.
#include <cstring>
#include <thread>
#include <utility>

#include "testing/amd/fake_rocm.h"

namespace leadline::testing::rocm {

void FakeRocm::sample(const Kernel& kernel, std::uint64_t external) {
  for (const Sampled& one : sampled) {
    if (one.kernel != kernel.name) continue;
    const sdk::SampledPlace place{1, 0x1000 * kernels_[kernel.name] + one.offset};
    for (std::uint32_t n = 0; n < one.count; ++n) {
      Record made{sampling_method == sdk::SamplingMethod::kHostTrap ? 2u : 3u, {}};
      if (sampling_method == sdk::SamplingMethod::kHostTrap) {
        sdk::HostTrapSample sample{};
        sample.size = sizeof sample;
        sample.place = place;
        sample.correlation_external.value = external;
        made.bytes.resize(sizeof sample);
        std::memcpy(made.bytes.data(), &sample, sizeof sample);
      } else {
        sdk::StochasticSample sample{};
        sample.size = sizeof sample;
        sample.place = place;
        sample.correlation_external.value = external;
        sample.issued_and_type = one.reason == 15 ? 1 : 0;
        sample.snapshot = one.reason == 15 ? 1u << 5 : one.reason | (n % 4 != 3 ? 0 : 1u << 6);
        made.bytes.resize(sizeof sample);
        std::memcpy(made.bytes.data(), &sample, sizeof sample);
      }
      samples_.push_back(std::move(made));
    }
  }
  Record invalid{1, std::vector<std::uint8_t>(8)};
  invalid.bytes[0] = 8;
  samples_.push_back(std::move(invalid));
}

void FakeRocm::flush_samples() {
  std::deque<Record> out;
  {
    const std::lock_guard lock(mutex);
    out.swap(samples_);
  }
  const auto callback = more_buffers.find(sampling_buffer);
  if (out.empty() || callback == more_buffers.end()) return;
  std::vector<sdk::RecordHeader> headers;
  for (Record& record : out) headers.push_back({sdk::Category::kPcSampling, record.kind, record.bytes.data()});
  std::vector<sdk::RecordHeader*> pointers;
  for (sdk::RecordHeader& header : headers) pointers.push_back(&header);
  std::thread([&] { callback->second({3}, {2}, pointers.data(), pointers.size(), nullptr, 0); }).join();
}

}  // namespace leadline::testing::rocm
