// Counters of dispatches: the part of FakeRocm behind the SDK's counting service.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>
#include <utility>

#include "testing/amd/fake_rocm.h"

namespace leadline::testing::rocm {
namespace {

constexpr std::uint64_t kInstances = 2;  // of a unit that counts by itself; what is derived has one

bool is_derived(const std::string& counter) {
  return std::ranges::any_of(counter, [](char c) { return c >= 'a' && c <= 'z'; });
}

}  // namespace

void FakeRocm::read_counters_of_environment() {
  if (const char* status = std::getenv("FAKE_COUNTING")) counting_status = std::atoi(status);
  const char* told = std::getenv("FAKE_COUNTERS");
  std::istringstream all(told ? told : "");
  for (std::string one; all >> one;) {
    std::replace(one.begin(), one.end(), ',', ' ');
    std::istringstream words(one);
    std::string kernel, counter;
    double value = 0;
    words >> kernel >> counter >> value;
    counted[{kernel, counter}] = value;
  }
}

// The configuration that the tool wants for a dispatch; 0: none.
std::uint64_t FakeRocm::wanted_counters(std::uint64_t agent, std::uint64_t dispatch) {
  if (!counting_on || choose_counters == nullptr) return 0;
  sdk::CounterConfig config;
  sdk::UserData user{};
  sdk::Dispatching about{};
  about.size = sizeof about;
  about.info.agent = agent;
  about.info.dispatch = dispatch;
  if (sdk_version < 10000) {
    sdk::OldDispatching old{};
    old.size = sizeof old;
    old.info = about.info;
    std::memcpy(&about, &old, sizeof old);
  }
  choose_counters(about, &config, &user, choose_data);
  return config.handle;
}

void FakeRocm::count(const Kernel& kernel, std::uint64_t config, const sdk::DispatchRecord& record) {
  const auto keep = [this](std::uint32_t kind, const auto& payload) {
    Record made{kind, std::vector<std::uint8_t>(sizeof payload)};
    std::memcpy(made.bytes.data(), &payload, sizeof payload);
    counted_records_.push_back(std::move(made));
  };
  if (sdk_version >= 10000) {
    keep(sdk::kCountedDispatch,
         sdk::CountedDispatch{sizeof(sdk::CountedDispatch), 0, 0, {}, 0, record.start, record.end, record.info});
  } else {
    keep(sdk::kCountedDispatch,
         sdk::OldCountedDispatch{sizeof(sdk::OldCountedDispatch), 0, 0, {}, record.start, record.end, record.info});
  }
  for (const std::uint64_t counter : counter_configs[config]) {
    const std::string& name = counters[counter - 1];
    const auto found = counted.find({kernel.name, name});
    const std::uint64_t instances = is_derived(name) ? 1 : kInstances;
    const double each = found == counted.end() ? 0 : found->second / static_cast<double>(instances);
    for (std::uint64_t i = 0; i < instances; ++i) {
      keep(sdk::kCounterValue, sdk::CounterValue{counter << 8 | i, each, record.info.dispatch, {}, record.info.agent});
    }
  }
}

void FakeRocm::flush_counters() {
  std::deque<Record> out;
  {
    const std::lock_guard lock(mutex);
    out.swap(counted_records_);
  }
  const auto callback = more_buffers.find(counting_buffer);
  if (out.empty() || callback == more_buffers.end()) return;
  std::vector<sdk::RecordHeader> headers;
  for (Record& record : out) headers.push_back({sdk::Category::kCounters, record.kind, record.bytes.data()});
  std::vector<sdk::RecordHeader*> pointers;
  for (sdk::RecordHeader& header : headers) pointers.push_back(&header);
  std::thread([&] { callback->second({4}, {3}, pointers.data(), pointers.size(), nullptr, 0); }).join();
}

}  // namespace leadline::testing::rocm

using leadline::testing::rocm::FakeRocm;
namespace sdk = leadline::amd::sdk;

extern "C" {

sdk::Status fake_counters_of(std::uint64_t agent, sdk::CountersCallback each, void* data) {
  std::vector<sdk::CounterId> ids;
  for (std::size_t i = 0; i < FakeRocm::instance().counters.size(); ++i) ids.push_back({i + 1});
  return each(agent, ids.data(), ids.size(), data);
}
sdk::Status fake_counter_info(sdk::CounterId id, std::int32_t version, void* info) {
  FakeRocm& rocm = FakeRocm::instance();
  if (version != sdk::kCounterInfoVersion || id.handle == 0 || id.handle > rocm.counters.size()) return 8;
  sdk::CounterInfo& told = *static_cast<sdk::CounterInfo*>(info);
  told = {};
  told.id = id;
  told.name = rocm.counters[id.handle - 1].c_str();
  return 0;
}
sdk::Status fake_create_config(std::uint64_t, sdk::CounterId* ids, std::size_t count, sdk::CounterConfig* config) {
  FakeRocm& rocm = FakeRocm::instance();
  if (count > rocm.counters_at_once) return sdk::kExceedsHardware;
  static std::uint64_t next = 1;
  config->handle = next++;
  for (std::size_t i = 0; i < count; ++i) rocm.counter_configs[config->handle].push_back(ids[i].handle);
  return 0;
}

}  // extern "C"
