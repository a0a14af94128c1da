#include "gpu/scratch_memory.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace leadline::gpu;

namespace {

using Kind = ScratchChange::Kind;

struct Told {
  std::vector<std::string> lines;
  ScratchMemory::Tell tell() {
    return [this](const ScratchChange& change, const KernelRun* run, const std::string* mangled) {
      const char* const what = change.kind == Kind::kTaken       ? "taken"
                               : change.kind == Kind::kGivenBack ? "free"
                                                                 : "idle";
      lines.push_back(std::string(what) + " " + std::to_string(change.bytes) + " " +
                      (run != nullptr ? *mangled + "@" + std::to_string(run->context) : std::string("nowhere")));
    };
  }
};

KernelRun run_at(leadline_context context, std::int64_t start, std::int64_t end) {
  KernelRun run;
  run.context = context;
  run.start_ns = start;
  run.end_ns = end;
  return run;
}

ScratchChange change(Kind kind, std::uint64_t queue, std::int64_t start, std::int64_t bytes = 0) {
  return {kind, queue, 0, start, start + 10, bytes};
}

}  // namespace

TEST_CASE("scratch memory belongs to the next kernel of its queue, whichever record comes first") {
  for (const bool kernels_first : {false, true}) {
    CAPTURE(kernels_first);
    ScratchMemory scratch;
    Told told;
    const auto kernels = [&] {
      scratch.ran(run_at(3, 300, 400), "later", 1);
      scratch.ran(run_at(2, 120, 200), "needs", 1);
      scratch.ran(run_at(1, 20, 90), "before", 1);
      scratch.ran(run_at(4, 115, 150), "elsewhere", 2);
    };
    if (kernels_first) kernels();
    scratch.changed(change(Kind::kReclaimed, 1, 500));
    scratch.changed(change(Kind::kTaken, 1, 100, 4096));
    if (!kernels_first) kernels();
    scratch.settle(600, told.tell());
    CHECK(told.lines == std::vector<std::string>{"taken 4096 needs@2", "idle 4096 needs@2"});
    CHECK(scratch.counters().unattributed == 0);
  }
}

TEST_CASE("what was taken waits for a kernel that runs long, and what follows it on the queue waits too") {
  ScratchMemory scratch;
  Told told;
  scratch.changed(change(Kind::kTaken, 1, 100, 64));
  scratch.changed(change(Kind::kGivenBack, 1, 900));
  scratch.changed(change(Kind::kTaken, 2, 100, 32));
  scratch.ran(run_at(7, 111, 500), "short", 2);
  scratch.settle(1000, told.tell());
  CHECK(told.lines == std::vector<std::string>{"taken 32 short@7"});
  scratch.ran(run_at(8, 120, 890), "long", 1);
  scratch.settle(1000, told.tell());
  CHECK(told.lines == std::vector<std::string>{"taken 32 short@7", "taken 64 long@8", "free 64 long@8"});
}

TEST_CASE("without a kernel it is told at the end, under nothing; a pause is no time of ours; room is bounded") {
  ScratchMemory scratch;
  Told told;
  scratch.changed(change(Kind::kTaken, 1, 100, 64));
  scratch.changed(change(Kind::kGivenBack, 5, 100, 8));
  scratch.pause(200);
  scratch.changed(change(Kind::kTaken, 1, 250, 64));
  scratch.resume(300);
  scratch.changed(change(Kind::kTaken, 1, 299, 64));
  scratch.settle(1000, told.tell());
  CHECK(told.lines == std::vector<std::string>{"free 8 nowhere"});
  scratch.finish(told.tell());
  CHECK(told.lines == std::vector<std::string>{"free 8 nowhere", "taken 64 nowhere"});
  CHECK(scratch.counters().unattributed == 2);
  for (std::size_t i = 0; i < ScratchMemory::kMostChanges + 5; ++i) scratch.changed(change(Kind::kTaken, i, 1000));
  CHECK(scratch.counters().dropped == 5);
}
