#include "base/device_table.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "base/ids.h"

using namespace leadline;

TEST_CASE("Devices get rows in the order they are met and keep them when described") {
  DeviceTable table;
  CHECK(table.row(DeviceType::kCuda, 3) == 0);
  CHECK(table.row(DeviceType::kCuda, 0) == 1);
  CHECK(table.row(DeviceType::kCuda, 3) == 0);
  CHECK(table.describe({3, "H100", "GPU-1", 80, "{}"}) == 0);
  const auto rows = table.rows();
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].name == "H100");
  CHECK(rows[0].index == 3);
  CHECK(rows[1].name.empty());
  CHECK(rows[1].index == 0);
}

TEST_CASE("A device number out of range is not a device, and one that is too large is a loss") {
  LossCounters losses;
  DeviceTable table(losses);
  CHECK(table.row(DeviceType::kCuda, -1) == kCpuDevice);
  CHECK(table.describe({-1, "x", "", 0, ""}) == kCpuDevice);
  CHECK(losses.total(LossKind::kInternalError) == 0);
  CHECK(table.row(DeviceType::kCuda, DeviceTable::kMost) == kCpuDevice);
  CHECK(losses.total(LossKind::kInternalError) == 1);
  CHECK(table.rows().empty());
}

TEST_CASE("As many devices as there are, each with its own row") {
  LossCounters losses;
  DeviceTable table(losses);
  for (std::int32_t device = 0; device < 5000; ++device) CHECK(table.row(DeviceType::kCuda, device) == device);
  CHECK(table.row(DeviceType::kCuda, DeviceTable::kMost - 1) == 5000);
  CHECK(table.row(DeviceType::kCuda, 4999) == 4999);
  CHECK(table.rows().size() == 5001);
  CHECK(losses.total(LossKind::kInternalError) == 0);
}

TEST_CASE("Threads that meet the same devices at once agree on their rows") {
  DeviceTable table;
  std::vector<std::array<std::int16_t, 8>> seen(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < seen.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::int32_t device = 0; device < 8; ++device)
        seen[t][static_cast<std::size_t>(device)] = table.row(DeviceType::kCuda, device);
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(table.rows().size() == 8);
  for (const auto& rows : seen) CHECK(rows == seen[0]);
  table.clear();
  CHECK(table.rows().empty());
  CHECK(table.row(DeviceType::kCuda, 5) == 0);
}

TEST_CASE("Devices of several vendors with one number are several devices") {
  LossCounters losses;
  DeviceTable table(losses);
  CHECK(table.row(DeviceType::kCuda, 0) == 0);
  CHECK(table.row(DeviceType::kHip, 0) == 1);
  CHECK(table.describe({0, "MI300X", "", 0, "{}", DeviceType::kHip}) == 1);
  CHECK(table.row(DeviceType::kCuda, 0) == 0);
  CHECK(table.rows()[0].name.empty());
  CHECK(table.rows()[1].name == "MI300X");
  CHECK(table.row(DeviceType::kCpu, 0) == kCpuDevice);
  CHECK(losses.total(LossKind::kInternalError) == 0);
  CHECK(table.row(DeviceType::kCpu, 0) == kCpuDevice);
}

TEST_CASE("A device of a type that nobody knows is no CPU") {
  LossCounters losses;
  DeviceTable table(losses);
  CHECK(table.row(DeviceType::kXpu, 0) == 0);
  CHECK(table.row(static_cast<DeviceType>(100), 0) == 1);
  CHECK(table.row(static_cast<DeviceType>(200), 0) == 1);
  CHECK(table.row(static_cast<DeviceType>(200), 1) == 2);
  CHECK(table.rows()[1].type == DeviceType::kOther);
  CHECK(losses.total(LossKind::kInternalError) == 0);
}
