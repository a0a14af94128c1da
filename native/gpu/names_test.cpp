// What a kernel's name tells, and how copies are called.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "gpu/cut_name.h"
#include "gpu/kernel_names.h"
#include "gpu/peer_copies.h"
#include "gpu/work.h"

#include "testing/forked_child.h"

namespace leadline::gpu {
TEST_CASE("collectives are told by their kernels' names, old and new") {
  CHECK(collective_of("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)") == "AllReduce");
  CHECK(collective_of("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*)") == "AllGather");
  CHECK(collective_of("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)") == "SendRecv");
  CHECK(collective_of("void gemm<float>()") == "");
}

TEST_CASE("a source learnt later reaches a kernel met before") {
  KernelSources sources;
  KernelNames names(sources);
  CHECK(names.get("triton_poi_fused_add_0").frame.line == 0);
  sources.put("triton_poi_fused_add_0", {"model.py", 12, "{\"operators\": [\"aten.add\"]}"});
  CHECK(names.get("triton_poi_fused_add_0").frame.line == 12);
  CHECK(names.get("_ZN2at6native3fooEv").text == "at::native::foo()");
  CHECK(names.get(nullptr).text == "(unnamed kernel)");
}

TEST_CASE("names of Composable Kernel are read, with the types that only its compiler knows") {
  KernelSources sources;
  KernelNames names(sources);
  const std::string& text =
      names
          .get(
              "_ZN2ck42kernel_sparse_embeddings_forward_layernormINS_40GridwiseSparseEmbeddingsForwardLayernormIDF16_l"
              "DF16_DF16_fDF16_NS_16TensorDescriptorINS_5TupleIJNS_7UnMergeINS3_IJiiEEELb0EEEEEENS3_IJNS_8SequenceIJLi"
              "0EEEEEEENS3_IJNS8_IJLi1ELi2EEEEEEESB_lEENS_16tensor_operation12element_wise6AddAddELi256ELi1ELi256ELi1E"
              "Li256ELi1ELi1ELi3EEEDF16_lDF16_DF16_fDF16_SD_SG_Li3EEEvPT5_NS_5ArrayIPT0_XT8_EEENSK_IPT1_XT8_EEEPKT2_PK"
              "T3_T6_T4_T7_")
          .text;
  CHECK(text.starts_with("void ck::kernel_sparse_embeddings_forward_layernorm<"));
  CHECK(text.find("GridwiseSparseEmbeddingsForwardLayernorm<_Float16, long, _Float16") != std::string::npos);
  CHECK(text.find("decimal") == std::string::npos);
  CHECK(names.get("_Z1fDF16bDB8_DU8_").text == "f(__bf16, _BitInt(8), unsigned _BitInt(8))");
  CHECK(names.get("_Z5DF16_v").text == "DF16_()");  // a name that looks like one of them
}

TEST_CASE("names that are too long to be demangled are cut behind an argument") {
  std::string numbers;
  for (int i = 0; i < 300; ++i) numbers += "Li" + std::to_string(i) + "E";
  const std::string front = "_ZN2ck12_GLOBAL__N_16kernelINS_4GemmItPKfLNS_4ModeE1ELb0ENS_8SequenceIJ";
  const std::string name = front + numbers + "EEEEEEvT_PT0_";
  REQUIRE(name.size() > kLongestName);
  const KernelSources sources;
  KernelNames names(sources);
  const std::string text = names.get(name.c_str()).text;
  CHECK(
      text.starts_with("void ck::(anonymous namespace)::kernel<ck::Gemm<unsigned short, float const*, (ck::Mode)1, "
                       "false, ck::Sequence<0, 1, 2, 3, "));
  CHECK(text.ends_with("> > >(... #3fc46f1e)"));  // as tests/profiles/test_demangle.py has it
  const std::string other = names.get((front + numbers + "Li7EEEEEEEvT_PT0_").c_str()).text;
  CHECK(other != text);
  CHECK(other.substr(0, other.size() - 9) == text.substr(0, text.size() - 9));
  CHECK(cut_name(front + numbers + "EEEEEEvT_PT0_", 100).size() <= 100);
  for (const char* none :
       {"_Z6kernelIiEvv", "_ZN1a1bEv", "_ZN1a1bIFvvEEEvv", "_ZN99", "_ZN1aILi", "_ZN1aIDF", "_ZN1aIS"})
    CHECK(cut_name(none, 100).find("kernel") == std::string::npos);
  // However a name is damaged, reading it ends.
  for (std::size_t length = 0; length < name.size(); ++length) cut_name(std::string_view(name).substr(0, length));
  for (std::size_t at = 3; at < front.size(); ++at) {
    for (const char c : {'9', 'E', 'L', 'S', 'I', 'D', '_'}) {
      std::string damaged = name;
      damaged[at] = c;
      names.get(damaged.c_str());
    }
  }
}

TEST_CASE("copies and sets are named as torch.profiler names them") {
  Work work;
  CHECK(std::string_view(copy_name(work)) == "Memcpy Unknown (Unknown -> Unknown)");
  CHECK(copy_detail(work) == nullptr);
  work.direction = Direction::kHtoD;
  work.source = Memory::kPinned;
  work.destination = Memory::kDevice;
  CHECK(std::string_view(copy_name(work)) == "Memcpy HtoD (Pinned -> Device)");
  CHECK(std::string_view(copy_detail(work)) == "{\"direction\": \"HtoD\"}");
  work.direction = Direction::kPtoP;
  work.source = work.destination = Memory::kManagedStatic;
  CHECK(std::string_view(copy_name(work)) == "Memcpy PtoP (Managed Static -> Managed Static)");
  CHECK(std::string_view(set_name(work)) == "Memset (Managed Static)");
}

TEST_CASE("copies between two devices say which, and what joins them") {
  PeerCopies peers;
  Work work;
  work.direction = Direction::kPtoP;
  work.device = 1;
  CHECK(peers.of(work) == nullptr);  // the other one is not told
  work.peer = 0;
  work.link = "xGMI";
  const PeerCopies::Named* const named = peers.of(work);
  REQUIRE(named != nullptr);
  CHECK(named->name == "Memcpy PtoP (Device 0 -> Device 1, xGMI)");
  CHECK(named->detail == R"({"direction": "PtoP", "from": 0, "to": 1, "link": "xGMI"})");
  CHECK(peers.of(work) == named);
  work.link = nullptr;
  CHECK(peers.of(work)->name == "Memcpy PtoP (Device 0 -> Device 1)");
  for (work.device = 1; work.device < static_cast<std::int32_t>(PeerCopies::kMostPairs); ++work.device) peers.of(work);
  work.device = 100'000;
  CHECK(peers.of(work) == nullptr);  // no room for more
}

TEST_CASE("a child forked while another thread adds a source of kernels has a lock of its own") {
  KernelSources sources;
  const auto adds = [&](std::uint64_t i) { sources.put("kernel " + std::to_string(i % 1000), {"model.py", 1, ""}); };
  CHECK(testing::failures_of_children_beside(adds, [&] {
          sources.after_fork();
          sources.put("of the child", {"model.py", 7, ""});
          KernelSource found;
          return sources.find("of the child", &found) && found.line == 7 ? 0 : 1;
        }) == 0);
}

}  // namespace leadline::gpu
