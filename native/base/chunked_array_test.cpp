#include "base/chunked_array.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace leadline;

TEST_CASE("ChunkedArray keeps what was appended, at the same address") {
  ChunkedArray<std::string, 4> array;
  CHECK(array.empty());
  std::vector<const std::string*> addresses;
  for (int i = 0; i < 1000; ++i) addresses.push_back(array.emplace_back(std::to_string(i)));
  REQUIRE(array.size() == 1000);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    CHECK(array[i] == std::to_string(i));
    CHECK(&array[i] == addresses[i]);
  }
}

TEST_CASE("ChunkedArray destroys its elements") {
  const auto counter = std::make_shared<int>(0);
  {
    ChunkedArray<std::shared_ptr<int>, 2> array;
    for (int i = 0; i < 37; ++i) array.emplace_back(counter);
    CHECK(counter.use_count() == 38);
  }
  CHECK(counter.use_count() == 1);
}

TEST_CASE("ChunkedArray takes memory in doubling chunks, the first one small") {
  ChunkedArray<std::uint64_t, 64> array;
  CHECK(array.held_bytes() == 0);
  array.emplace_back(1u);
  CHECK(array.held_bytes() == 64 * 8);
  for (std::uint64_t i = 1; i < 65; ++i) array.emplace_back(i);
  CHECK(array.held_bytes() == (64 + 128) * 8);
}

TEST_CASE("Readers of a ChunkedArray see every published element whole") {
  struct Pair {
    std::uint64_t value, twice;
  };
  constexpr std::uint32_t kElements = 200'000;
  ChunkedArray<Pair> array;
  std::vector<std::thread> readers;
  std::atomic<std::uint64_t> torn{0};
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&] {
      for (std::uint32_t size = 0; size < kElements;) {
        size = array.size();
        for (std::uint32_t i = size > 100 ? size - 100 : 0; i < size; ++i) {
          if (array[i].value != i || array[i].twice != 2 * array[i].value) torn.fetch_add(1);
        }
      }
    });
  }
  for (std::uint64_t i = 0; i < kElements; ++i) array.emplace_back(Pair{i, 2 * i});
  for (auto& reader : readers) reader.join();
  CHECK(torn == 0);
}
