// The host half on the fake Compute Sanitizer: sums and losses of drawn programs, exactly. LEADLINE_SANITIZER_TEXT runs
// on the device: its text itself, or plain functions.

#include "backends/sanitizer/backend.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "backends/sanitizer/drawn_programs_test.h"

namespace leadline::sanitizer {

using testing::Region;

TEST_CASE_FIXTURE(Fixture, "What launches have touched is told, and nobody has waited for a stream") {
  Backend backend(options());
  REQUIRE(backend.start() == "");
  play(kProgram + "launch gemm grid=8 block=128\nlaunch copy grid=2 block=128\nwait\n");
  backend.stop();
  const Seen seen(backend);
  CHECK(seen.lines() == "0" + kGemm + "0" + kGemmOut + "1: 262144 0r 256w 1p 4096-5120\n1: 65536 256r 0w 1p 0-1024\n");
  REQUIRE(seen.launches.size() == 2);
  CHECK(backend.code()->name(seen.launches[0].name) == "gemm");
  CHECK(seen.launches[0].blocks == 8);
  CHECK(seen.launches[0].threads == 128);
  REQUIRE(seen.done.size() == 2);
  CHECK(seen.done[0].threads == 1024);
  CHECK(calls("sanitizerStreamSynchronize") == 0);
  CHECK(calls("sanitizerMemcpyDeviceToHost") == 0);
  CHECK(calls("sanitizerUnpatchModule") == 1);
  CHECK(fake<std::uint64_t()>("fake_sanitizer_allocations")() == 0);
}

TEST_CASE_FIXTURE(Fixture, "The table goes to the device only where it has changed, and memory is taken once") {
  Backend backend(options());
  REQUIRE(backend.start() == "");
  play(kProgram + "launch gemm grid=8 block=128\nwait\n");
  while (backend.under_way() > 0) std::this_thread::yield();
  const std::uint64_t copies = calls("sanitizerMemcpyHostToDeviceAsync");
  CHECK(copies == 2);  // the table and the set-up
  const std::uint64_t memory = calls("sanitizerAlloc") + calls("sanitizerAllocHost");
  for (int i = 0; i < 20; ++i) {
    play("launch gemm grid=8 block=128\nwait\n");
    while (backend.under_way() > 0) std::this_thread::yield();
  }
  CHECK(calls("sanitizerMemcpyHostToDeviceAsync") == copies + 20);
  play("alloc more context=A bytes=4096\nlaunch gemm grid=8 block=128\nwait\n");
  while (backend.under_way() > 0) std::this_thread::yield();
  CHECK(calls("sanitizerMemcpyHostToDeviceAsync") == copies + 22);
  CHECK(calls("sanitizerAlloc") + calls("sanitizerAllocHost") == memory);
  CHECK(calls("sanitizerPatchModule") == 1);
  CHECK(calls("sanitizerMemset") == 2);
  backend.stop();
}

TEST_CASE_FIXTURE(Fixture,
                  "Sixty-four launches are under way at once; what comes beyond is counted, and measured later") {
  Backend backend(options());
  REQUIRE(backend.start() == "");
  play(kProgram + "hold A stream=1\nlaunch gemm grid=8 block=128 times=70\n");
  CHECK(backend.under_way() == 64);
  CHECK(backend.lost().of(Lost::kNoTracker) == 6);
  play("release-stream A stream=1\nwait\n");
  while (backend.under_way() > 0) std::this_thread::yield();
  play("launch copy grid=2 block=128\nwait\n");
  backend.stop();
  const Seen seen(backend);
  CHECK(seen.launches.size() == 71);
  CHECK(seen.done.size() == 65);
  CHECK(seen.touched.size() == 130);
  CHECK(backend.lost().of(Lost::kNoTracker) == 6);
  CHECK(backend.lost().of(Lost::kNeverCompleted) == 0);
}

TEST_CASE_FIXTURE(Fixture, "A program that is further ahead than there are trackers waits for one") {
  Backend backend(options());
  REQUIRE(backend.start() == "");
  play(kProgram + "hold A stream=1\nlaunch gemm grid=8 block=128 times=64\n");
  REQUIRE(backend.under_way() == 64);
  std::thread ahead([this] { play("launch gemm grid=8 block=128 times=6\n"); });
  play("release-stream A stream=1\n");
  ahead.join();
  play("wait\n");
  while (backend.under_way() > 0) std::this_thread::yield();
  backend.stop();
  CHECK(Seen(backend).done.size() == 70);
  CHECK(backend.lost().of(Lost::kNoTracker) == 0);
}

TEST_CASE_FIXTURE(Fixture, "Two contexts and two threads at once: every launch is told once, with its own sums") {
  Backend backend(options());
  REQUIRE(backend.start() == "");
  std::string text = kProgram +
                     "context B device=1\n"
                     "alloc other context=B bytes=8192\n"
                     "kernel scale\nread other count=512\nwrite other first=4096 count=512\n"
                     "module n context=B functions=scale\n"
                     "thread\n";
  for (int i = 0; i < 20; ++i) text += "launch gemm grid=8 block=128 stream=1\nlaunch copy grid=2 block=128 stream=2\n";
  text += "thread\n";
  for (int i = 0; i < 20; ++i)
    text += "launch scale module=n grid=4 block=128 stream=1\nalloc t bytes=512 context=B\nfree t\n";
  play(text + "together\nwait\n");
  while (backend.under_way() > 0) std::this_thread::yield();
  backend.stop();
  const Seen seen(backend);
  const std::uint64_t lost = backend.lost().of(Lost::kPatchedMeanwhile);  // the first of each context met the other
  CHECK(seen.launches.size() == 60);
  CHECK(seen.done.size() + lost == 60);
  std::map<std::string, std::map<std::string, int>> by_kernel;
  std::map<std::int64_t, std::string> kernel_of;
  for (const LaunchRow& row : seen.launches) kernel_of[row.launch] = backend.code()->name(row.name);
  for (const TouchedRow& row : seen.touched) {
    ++by_kernel[kernel_of.at(row.launch)][std::to_string(seen.objects.at(row.object).bytes) + " " +
                                          std::to_string(row.reads) + " " + std::to_string(row.writes)];
  }
  for (const auto& [kernel, kinds] : by_kernel) CHECK(kinds.size() == (kernel == "scale" ? 1 : 2));
  CHECK(by_kernel["scale"]["8192 512 512"] + by_kernel["gemm"]["65536 0 256"] + by_kernel["copy"]["65536 256 0"] +
            lost ==
        60);
  for (const LaunchRow& row : seen.launches) CHECK(row.device == (kernel_of.at(row.launch) == "scale" ? 1 : 0));
}

TEST_CASE_FIXTURE(Fixture, "Nodes of a graph are launches of their own; what is only uploaded is none") {
  Backend backend(options());
  REQUIRE(backend.start() == "");
  play(kProgram + "replay gemm,copy upload=1\nreplay gemm,copy,gemm grid=8 block=128\nwait\n");
  backend.stop();
  const Seen seen(backend);
  CHECK(seen.launches.size() == 3);
  CHECK(seen.lines() == "0" + kGemm + "0" + kGemmOut + "1: 262144 0r 256w 1p 4096-5120\n1: 65536 256r 0w 1p 0-1024\n" +
                            "2" + kGemm + "2" + kGemmOut);
  CHECK(backend.lost().of(Lost::kNeverCompleted) == 0);
}

TEST_CASE_FIXTURE(Fixture, "Only what is chosen is measured, and only its modules are patched") {
  Options chosen = options();
  chosen.wanted.kernel = "ge.m";
  chosen.wanted.every = 2;
  Backend backend(chosen);
  REQUIRE(backend.start() == "");
  play(kProgram + "module other context=A functions=copy\n" +
       "launch copy module=other grid=2 block=128\nlaunch gemm grid=8 block=128 times=3\n"
       "launch copy grid=2 block=128\nwait\n");
  backend.stop();
  const Seen seen(backend);
  CHECK(seen.lines() == "1" + kGemm + "1" + kGemmOut + "3" + kGemm + "3" + kGemmOut);
  CHECK(backend.skipped() == 3);
  CHECK(calls("sanitizerPatchModule") == 1);
}

TEST_CASE_FIXTURE(Fixture, "A range of launches is those of their numbers") {
  Options chosen = options();
  chosen.wanted.first = 2;
  chosen.wanted.end = 4;
  Backend backend(chosen);
  REQUIRE(backend.start() == "");
  play(kProgram + "launch gemm grid=8 block=128 times=6\nwait\n");
  backend.stop();
  const Seen seen(backend);
  CHECK(seen.lines() == "2" + kGemm + "2" + kGemmOut + "3" + kGemm + "3" + kGemmOut);
  CHECK(backend.skipped() == 4);
}

TEST_CASE_FIXTURE(Fixture, "A layer is asked of the place of a launch") {
  Options chosen = options();
  chosen.wanted.layer = "^h\\.\\d+\\.attn$";
  Backend backend(chosen);
  REQUIRE(backend.start() == "");
  play(kProgram);
  for (const char* const layer : {"h.1.mlp", "h.1.attn", "h.22.attn", "x.h.1.attn"}) {
    const Region module(layer);
    play("launch gemm grid=8 block=128 times=2\nwait\n");
  }
  backend.stop();
  CHECK(Seen(backend).launches.size() == 4);
  CHECK(backend.skipped() == 4);
}

TEST_CASE_FIXTURE(Fixture, "Another subscriber, a driver that does not match and a missing library are said in words") {
  {
    play("taken\n");
    Backend backend(options());
    CHECK(backend.start().find("another tool in this process has subscribed") != std::string::npos);
  }
  play("reset\n");
  {
    Backend backend(options());
    REQUIRE(backend.start() == "");
    play(kProgram + "driver mismatched\nlaunch gemm grid=8 block=128 times=2\nwait\n");
    backend.stop();
    CHECK(backend.lost().of(Lost::kNotPatched) == 2);
    CHECK(backend.code()->problem().find("connection to the CUDA driver (13)") != std::string::npos);
  }
  Options nowhere = options();
  nowhere.candidates = {"/nowhere/libsanitizer-public.so"};
  Backend backend(nowhere);
  CHECK(backend.start().find("/nowhere/libsanitizer-public.so") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "A module that is unloaded is forgotten, and one that comes in its place is patched") {
  Backend backend(options());
  REQUIRE(backend.start() == "");
  play(kProgram + "hold A stream=1\nlaunch gemm grid=8 block=128\nunload m\nrelease-stream A stream=1\nwait\n" +
       "module m context=A functions=gemm,copy\nlaunch gemm grid=8 block=128\nwait\n");
  backend.stop();
  const Seen seen(backend);
  CHECK(seen.lines() == "0" + kGemm + "0" + kGemmOut + "1" + kGemm + "1" + kGemmOut);
  CHECK(calls("sanitizerPatchModule") == 2);
}

TEST_CASE_FIXTURE(Fixture, "Stopped with work under way, it is counted and left alone") {
  Backend backend(options());
  REQUIRE(backend.start() == "");
  play(kProgram + "launch gemm grid=8 block=128\nwait\nhold A stream=1\nlaunch gemm grid=8 block=128 times=3\n");
  backend.stop(std::chrono::milliseconds(20));
  CHECK(backend.lost().of(Lost::kAtStop) == 3);
  CHECK(calls("sanitizerFree") == 0);
  CHECK(calls("sanitizerUnpatchModule") == 0);
  const Seen seen(backend);
  CHECK(seen.done.size() == 1);
  play("release-stream A stream=1\nwait\n");  // what runs on still finds its text and its memory
}

TEST_CASE_FIXTURE(Fixture, "A launch that dies is found out by the next of its stream, and its tracker is cleared") {
  Backend backend(options());
  REQUIRE(backend.start() == "");
  play(kProgram + "kernel dead\nread out count=256\ndies\nmodule n context=A functions=dead\n");
  play("launch dead module=n grid=2 block=128\nlaunch gemm stream=2 grid=8 block=128\nwait\n");
  while (backend.under_way() > 1) std::this_thread::yield();
  CHECK(backend.lost().of(Lost::kNeverCompleted) == 0);  // another stream says nothing
  play("launch gemm grid=8 block=128\nwait\n");
  while (backend.under_way() > 0) std::this_thread::yield();
  CHECK(backend.lost().of(Lost::kNeverCompleted) == 1);
  const std::uint64_t cleared = calls("sanitizerMemset");
  play("launch gemm grid=8 block=128 times=4\nwait\n");
  while (backend.under_way() > 0) std::this_thread::yield();
  CHECK(calls("sanitizerMemset") > cleared);
  backend.stop();
  CHECK(Seen(backend).lines() == "1" + kGemm + "1" + kGemmOut + "2" + kGemm + "2" + kGemmOut + "3" + kGemm + "3" +
                                     kGemmOut + "4" + kGemm + "4" + kGemmOut + "5" + kGemm + "5" + kGemmOut + "6" +
                                     kGemm + "6" + kGemmOut);
}

TEST_CASE_FIXTURE(Fixture, "A context that goes away takes its launches along") {
  Backend backend(options());
  REQUIRE(backend.start() == "");
  play(kProgram + "launch gemm grid=8 block=128\nwait\ndestroy A\n" + kProgram +
       "launch gemm grid=8 block=128\nwait\n");
  backend.stop();
  const Seen seen(backend);
  CHECK(seen.done.size() == 2);
  CHECK(backend.lost().of(Lost::kContextGone) == 0);
}

TEST_CASE_FIXTURE(Fixture, "Without memory on the device launches are not measured, and the program goes on") {
  Backend backend(options());
  REQUIRE(backend.start() == "");
  play(kProgram + "memory 1000\nlaunch gemm grid=8 block=128 times=2\nwait\n");
  backend.stop();
  CHECK(backend.lost().of(Lost::kNoMemory) == 2);
  CHECK(Seen(backend).launches.size() == 2);
}

TEST_CASE_FIXTURE(Fixture, "A release without points for tensor maps says so") {
  play("release 13.0\n");
  Backend backend(options());
  REQUIRE(backend.start() == "");
  play(kProgram + "launch gemm grid=8 block=128\nwait\n");
  CHECK(backend.code()->without_tma());
  backend.stop();
  CHECK(Seen(backend).done.size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "Tensors that the framework tells of are objects of their own") {
  Backend backend(options());
  REQUIRE(backend.start() == "");
  play(
      "context A\nalloc pool context=A bytes=65536\nkernel k\nread pool count=256\nread pool first=8192 count=256\n"
      "module m context=A functions=k\n");
  leadline_event event = leadline_event_of(LEADLINE_DOMAIN_MEMORY, LEADLINE_INSTANT);
  event.of.memory = {
      .address = 0, .bytes = 4096, .device_type = 1, .device = 0, .allocated_total = 0, .reserved_total = 0};
  std::vector<Birth> births(1);
  REQUIRE(backend.objects().births(births.data(), 1) == 1);
  event.of.memory.address = births[0].address + 8192;
  leadline_monitor_emit(&event);
  event.of.memory.device_type = 0;  // of the CPU: nothing here
  leadline_monitor_emit(&event);
  play("launch k grid=8 block=128\nwait\n");
  backend.stop();
  std::vector<TouchedRow> rows(10);
  rows.resize(backend.results().touched.take(rows.data(), rows.size()));
  REQUIRE(rows.size() == 2);
  std::map<std::uint32_t, TouchedRow> by_object;
  for (const TouchedRow& row : rows) by_object[row.object] = row;
  CHECK(by_object.at(0).reads == 256);
  CHECK(by_object.at(1).reads == 256);
  CHECK(by_object.at(1).first == 0);
  CHECK(by_object.at(1).end == 1024);
}

TEST_CASE_FIXTURE(Fixture, "Pages are counted in several sizes, from the bits of the smallest") {
  Options several = options();
  several.shape.page_sizes = {1024, 4096, 65536, 0};
  several.shape.page_shift = 10;
  several.shape.words = true;
  Backend backend(several);
  REQUIRE(backend.start() == "");
  play(kProgram + "launch gemm grid=8 block=128\nwait\n");
  backend.stop();
  for (const TouchedRow& row : Seen(backend).touched) {
    CHECK(row.pages[0] == (row.reads > 0 ? 256 : 1));
    CHECK(row.pages[1] == (row.reads > 0 ? 64 : 1));
    CHECK(row.pages[2] == (row.reads > 0 ? 4 : 1));
  }
}

TEST_CASE_FIXTURE(Fixture, "Launches carry the place where they were made") {
  Backend backend(options());
  REQUIRE(backend.start() == "");
  play(kProgram);
  {
    const Region step("step");
    play("launch gemm grid=8 block=128\nwait\n");
  }
  backend.stop();
  const Seen seen(backend);
  REQUIRE(seen.launches.size() == 1);
  CHECK(seen.launches[0].place != 0);
  for (const TouchedRow& row : seen.touched) CHECK(row.place == seen.launches[0].place);
}

}  // namespace leadline::sanitizer
