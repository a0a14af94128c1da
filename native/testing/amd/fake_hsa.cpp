// The functions of HSA that programs find in the library, beside FakeRocm itself.
#include "testing/amd/fake_rocm.h"

// What HSA programs would call; here it only has to be there.
extern "C" int hsa_init() { return 0; }
extern "C" int hsa_amd_memory_async_copy(void*, std::uint64_t, const void*, std::uint64_t, std::size_t bytes) {
  namespace fake = leadline::testing::rocm;
  auto& rocm = fake::FakeRocm::instance();
  struct {
    std::uint64_t size = 8 + 64 + 8;
    std::uint8_t arguments[64] = {};
    std::uint64_t result = 0;
  } payload;
  rocm.tell(rocm.kind_hsa(), 1, fake::sdk::Phase::kEnter, &payload);
  rocm.copy(rocm.stream(0), fake::sdk::CopyOperation::kHostToDevice, bytes, 1000);
  rocm.tell(rocm.kind_hsa(), 1, fake::sdk::Phase::kExit, &payload);
  return 0;
}
