// What needs no device: calls by name, occupancy by chip, devices as the environment shows them, packed correlation
// ids.
#include <doctest/doctest.h>

#include "providers/amd/agents.h"
#include "providers/amd/chips.h"
#include "providers/amd/correlation.h"
#include "providers/amd/hip_calls.h"
#include "providers/amd/kernel_symbols.h"
#include "providers/amd/records.h"

namespace leadline::amd {
namespace {

gpu::DeviceInfo device(std::int32_t major, std::int32_t minor, std::int32_t stepping, std::int32_t wave,
                       std::int32_t units) {
  gpu::DeviceInfo info;
  info.major = major;
  info.minor = minor;
  info.stepping = stepping;
  info.warp_size = wave;
  info.multiprocessors = units;
  return info;
}

gpu::LaunchShape shape(std::int64_t blocks, std::int32_t threads, std::int32_t vgprs, std::int64_t lds,
                       std::int32_t agprs = 0) {
  gpu::LaunchShape made;
  made.blocks = blocks;
  made.block_threads = threads;
  made.registers_per_thread = vgprs;
  made.dynamic_shared_bytes = lds;
  made.accumulation_registers = agprs;
  return made;
}

}  // namespace

TEST_CASE("calls are followed by name, getters and queries never") {
  CHECK(classify("hipLaunchKernel").kind == LEADLINE_GPU_LAUNCH);
  CHECK(classify("hipLaunchKernel_spt").name == "hipLaunchKernel");
  CHECK(classify("hipMemcpy3DAsync").kind == LEADLINE_GPU_COPY);
  CHECK(classify("hipMemcpyAsync").arguments.bytes == 16);
  CHECK(classify("hipHostMalloc").kind == LEADLINE_GPU_OTHER);
  CHECK(classify("hipMalloc").kind == LEADLINE_GPU_ALLOC);
  CHECK(classify("hipGraphInstantiateWithFlags").step == Step::kInstantiate);
  for (const char* name : {"hipGetDevice", "hipEventQuery", "hipStreamQuery", "hipMemGetInfo", "hipMemPoolGetAccess",
                           "hipPointerGetAttributes", "hipEventElapsedTime", "hipGraphAddKernelNode"}) {
    CAPTURE(name);
    CHECK_FALSE(classify(name).followed);
  }
}

TEST_CASE("how full known launches make known chips") {
  const gpu::DeviceInfo mi300 = device(9, 4, 2, 64, 304);
  CHECK(theoretical_occupancy(shape(304, 256, 64, 0), mi300).occupancy_millionths == 1'000'000);
  CHECK(theoretical_occupancy(shape(304, 256, 128, 0), mi300).occupancy_millionths == 500'000);       // 512 / 128 waves
  CHECK(theoretical_occupancy(shape(304, 256, 128, 0, 128), mi300).occupancy_millionths == 250'000);  // one file
  CHECK(theoretical_occupancy(shape(304, 256, 512, 0), mi300).occupancy_millionths == 125'000);
  CHECK(theoretical_occupancy(shape(304, 256, 32, 64 * 1024), mi300).blocks_per_multiprocessor == 1);
  // A block made for warps of 32 leaves half of each wavefront's lanes empty, and the wavefronts count all the same.
  CHECK(theoretical_occupancy(shape(304, 32, 32, 0), mi300).blocks_per_multiprocessor == 32);
  CHECK(theoretical_occupancy(shape(304 * 8, 256, 32, 0), mi300).waves_thousandths == 1000);

  const gpu::DeviceInfo mi100 = device(9, 0, 8, 64, 120);
  CHECK(theoretical_occupancy(shape(1, 256, 24, 0), mi100).occupancy_millionths == 1'000'000);
  CHECK(theoretical_occupancy(shape(1, 256, 128, 0, 128), mi100).occupancy_millionths == 200'000);  // files apart
  const gpu::DeviceInfo mi250 = device(9, 0, 10, 64, 104);
  CHECK(theoretical_occupancy(shape(1, 256, 64, 0), mi250).occupancy_millionths == 1'000'000);
  const gpu::DeviceInfo mi350 = device(9, 5, 0, 64, 256);
  CHECK(theoretical_occupancy(shape(1, 256, 32, 64 * 1024), mi350).blocks_per_multiprocessor == 2);

  const gpu::DeviceInfo rx7900 = device(11, 0, 0, 32, 96);
  CHECK(theoretical_occupancy(shape(1, 256, 96, 0), rx7900).occupancy_millionths == 1'000'000);
  CHECK(theoretical_occupancy(shape(1, 256, 192, 0), rx7900).occupancy_millionths == 500'000);
  CHECK(theoretical_occupancy(shape(48 * 8, 256, 96, 0), rx7900).waves_thousandths == 1000);  // pairs of units
  const gpu::DeviceInfo rx6800 = device(10, 3, 0, 32, 60);
  CHECK(theoretical_occupancy(shape(1, 256, 64, 0), rx6800).occupancy_millionths == 1'000'000);
  CHECK(theoretical_occupancy(shape(1, 256, 65, 0), rx6800).occupancy_millionths == 750'000);
  // The ends of what is known: MI50, and Radeon RX 9070.
  const gpu::DeviceInfo mi50 = device(9, 0, 6, 64, 60);
  CHECK(theoretical_occupancy(shape(1, 256, 24, 0), mi50).occupancy_millionths == 1'000'000);
  CHECK(theoretical_occupancy(shape(1, 256, 128, 0), mi50).occupancy_millionths == 200'000);
  const gpu::DeviceInfo rx9070 = device(12, 0, 1, 32, 64);
  CHECK(theoretical_occupancy(shape(1, 256, 96, 0), rx9070).occupancy_millionths == 1'000'000);
  CHECK(theoretical_occupancy(shape(1, 256, 97, 0), rx9070).occupancy_millionths == 750'000);

  CHECK(theoretical_occupancy(shape(1, 256, 32, 0), device(13, 0, 0, 32, 60)).blocks_per_multiprocessor == 0);
  CHECK(theoretical_occupancy(shape(1, 256, 32, 0), gpu::DeviceInfo{}).blocks_per_multiprocessor == 0);
}

TEST_CASE("devices are numbered as HIP shows them") {
  std::array<sdk::Agent, 5> agents{};
  std::vector<const void*> pointers;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    agents[i].size = sizeof(sdk::Agent);
    agents[i].type = i == 0 ? sdk::AgentType::kCpu : sdk::AgentType::kGpu;
    agents[i].id = 10 + i;
    agents[i].location = i == 4 ? 0x8300 : 0xc100 + static_cast<std::uint32_t>(i);  // 11 to 13 are of one card
    agents[i].uuid = 0xaa00 + i;
    agents[i].name = "gfx942";
    agents[i].gfx_target_version = 90402;
    pointers.push_back(&agents[i]);
  }
  const auto load = [&](Visibility visibility) {
    Agents made;
    made.load(pointers.data(), pointers.size(), visibility);
    return made;
  };
  const Agents all = load({});
  REQUIRE(all.gpus().size() == 4);
  CHECK(all.device(10) == -1);
  CHECK(all.device(11) == 0);
  CHECK(all.device(14) == 3);
  CHECK(all.gpus()[1].part == 1);
  CHECK(all.gpus()[1].parts == 3);
  CHECK(all.gpus()[3].parts == 1);
  CHECK(all.gpus()[0].info.major == 9);
  CHECK(all.gpus()[0].info.stepping == 2);
  // HIP's list counts among what the lower layer shows.
  const Agents some = load({"3,1,2", "2,0"});
  REQUIRE(some.gpus().size() == 2);
  CHECK(some.device(13) == 0);
  CHECK(some.device(14) == 1);
  CHECK(some.device(11) == -1);
  CHECK(load({"GPU-000000000000aa02", std::nullopt}).device(12) == 0);
  CHECK(load({std::nullopt, "1,nonsense,0"}).gpus().size() == 1);  // a wrong entry ends the list
  CHECK(load({std::nullopt, ""}).gpus().empty());

  agents[2].size = offsetof(sdk::Agent, visibility);  // of an older release
  CHECK(load({}).gpus()[1].info.uuid == "");
}

TEST_CASE("a correlation id comes back as it went") {
  for (const Correlation want : {Correlation{1, 0, 0}, Correlation{0xffffffff, Correlation::kMostNodes, 4094},
                                 Correlation{7, 1, StreamNumbers::kUnknown}}) {
    const Correlation got = Correlation::unpack(want.pack());
    CHECK(got.call == want.call);
    CHECK(got.node == want.node);
    CHECK(got.stream == want.stream);
  }
}

TEST_CASE("records of older releases are read as far as they go, and those without times are not work") {
  KernelSymbols kernels;
  sdk::KernelSymbol symbol{};
  symbol.size = offsetof(sdk::KernelSymbol, sgprs);
  symbol.kernel = 5;
  symbol.name = "_Z4gemmPf.kd";
  symbol.arch_vgprs = 99;  // not there in such a release
  REQUIRE(kernels.put(symbol));
  CHECK(kernels.find(5)->name == "_Z4gemmPf");
  CHECK(kernels.find(5)->vgprs == 0);
  CHECK(kernels.find(6) == nullptr);

  gpu::GraphMap nodes;
  const Graphs graphs(nodes);
  const Agents agents;
  const Decoder decode{agents, kernels, graphs, 100};
  sdk::DispatchRecord record{};
  CHECK(decode.dispatch(record).kind == gpu::WorkKind::kNone);
  record.start = 1000;
  record.end = 3000;
  record.info.kernel = 5;
  record.info.workgroup = {64, 2, 1};
  record.info.grid = {130, 4, 1};
  record.correlation_external.value = Correlation{9, 0, 3}.pack();
  const gpu::Work work = decode.dispatch(record);
  CHECK(work.start_ns == 1100);
  CHECK(work.blocks == 6);
  CHECK(work.block_threads == 128);
  CHECK(work.stream == 3);
  CHECK(work.correlation == 9);
  sdk::CopyRecord copy{};
  copy.start = copy.end = 10;
  copy.operation = static_cast<sdk::CopyOperation>(77);  // of a release to come
  CHECK(decode.copy(copy).direction == gpu::Direction::kUnknown);
}

}  // namespace leadline::amd
