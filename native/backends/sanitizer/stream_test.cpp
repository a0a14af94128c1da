// Sums that are made on the host from the stream of accesses, beside those of the device.
#include "backends/sanitizer/drawn_programs_test.h"

namespace leadline::sanitizer {

TEST_CASE_FIXTURE(Fixture, "Analysis of the stream on the host says the same, one launch after the other") {
  const std::string program = kProgram + "launch gemm grid=8 block=128\nwait\nlaunch copy grid=2 block=128\nwait\n";
  std::string on_the_device;
  {
    Options asked = options();
    asked.shape.page_sizes = {4096, 65536, 0, 0};
    asked.shape.words = true;
    Backend backend(std::move(asked));
    REQUIRE(backend.start() == "");
    play(program);
    backend.stop();
    on_the_device = Seen(backend).lines();
  }
  play("reset\n");
  for (const std::uint64_t room : {std::uint64_t{1} << 16, std::uint64_t{100}}) {
    Options asked = options();
    asked.shape.page_sizes = {4096, 65536, 0, 0};
    asked.shape.words = true;
    asked.shape.raw_room = room;
    Backend backend(std::move(asked));
    REQUIRE(backend.start() == "");
    play(program);
    backend.stop();
    if (room > 1280) {
      CHECK(Seen(backend).lines() == on_the_device);
      CHECK(backend.lost().of(Lost::kRaw) == 0);
    } else {
      CHECK(backend.lost().of(Lost::kRaw) == 1280 - 100 + 512 - 100);
    }
    play("reset\n");
  }
}

}  // namespace leadline::sanitizer
