#include <thread>
#include <vector>

#include "base/clock.h"
#include "testing/recorded_program.h"

using namespace leadline;
using namespace leadline::testing;

namespace {

leadline_path_frame frame(FrameKind kind, const char* name) {
  leadline_path_frame made{};
  made.kind = static_cast<uint8_t>(kind);
  made.name = name;
  return made;
}

leadline_total total(MetricKind metric, uint64_t count, int64_t sum, int64_t min, int64_t max) {
  return {static_cast<uint32_t>(metric), count, sum, min, max, 0};
}

leadline_status book(leadline_context below, const std::vector<leadline_path_frame>& frames,
                     const std::vector<leadline_total>& totals, leadline_context* place = nullptr) {
  leadline_booking booking = leadline_booking_of(below);
  booking.frames = frames.data();
  booking.frame_count = static_cast<uint32_t>(frames.size());
  booking.totals = totals.data();
  booking.total_count = static_cast<uint32_t>(totals.size());
  booking.device_type = 1;
  booking.device = 0;
  booking.stream = 7;
  return leadline_monitor_book(&booking, place);
}

}  // namespace

TEST_CASE("What was measured elsewhere is booked at the path that it names, and what follows below it") {
  RecordedProgram program;
  const leadline_context train = place_of("train");
  const std::vector<leadline_path_frame> path{frame(FrameKind::kOperator, "fusion"),
                                              frame(FrameKind::kKernel, "loop_add")};
  leadline_context fusion = 0;
  REQUIRE(book(train, {path[0]}, {}, &fusion) == LEADLINE_OK);
  CHECK(fusion != 0);
  leadline_context kernel = 0;
  CHECK(book(train, path, {total(MetricKind::kGpuTime, 3, 60, 10, 30)}, &kernel) == LEADLINE_OK);
  // From another thread, below what was booked before: the same path.
  std::thread([&] {
    CHECK(book(fusion, {path[1]}, {total(MetricKind::kGpuTime, 1, 5, 5, 5)}) == LEADLINE_OK);
    CHECK(book(kernel, {}, {total(MetricKind::kGpuTime, 2, 200, 100, 100)}) == LEADLINE_OK);
  }).join();
  CHECK(book(LEADLINE_PLACE_THREAD, {frame(FrameKind::kRegion, "file")}, {total(MetricKind::kCopyBytes, 1, 9, 9, 9)}) ==
        LEADLINE_OK);
  program.take();
  const Measured time = program.measured("main/train/fusion/loop_add", MetricKind::kGpuTime);
  CHECK(time.count == 6);
  CHECK(time.sum == 265);
  CHECK(time.min == 5);
  CHECK(time.max == 100);
  CHECK(program.measured("main/file", MetricKind::kCopyBytes).sum == 9);
  CHECK(program.collector.devices().rows().size() == 1);
  CHECK(losses().total(LossKind::kInternalError) == 0);
}

TEST_CASE("A booking that makes no sense is refused whole") {
  RecordedProgram program;
  const leadline_context train = place_of("train");
  const leadline_total time = total(MetricKind::kGpuTime, 1, 5, 5, 5);
  const leadline_path_frame kernel = frame(FrameKind::kKernel, "k");
  const auto refused = [&](leadline_context below, const leadline_path_frame& last, const leadline_total& value) {
    leadline_context place = 1;
    return book(below, {kernel, last}, {time, value}, &place) == LEADLINE_ERROR_INVALID && place == 0;
  };
  CHECK(refused(0, kernel, time));
  CHECK(refused(train + 1'000, kernel, time));
  CHECK(refused(train + (uint64_t{1'000} << 32), kernel, time));
  CHECK(refused(train, frame(FrameKind::kKernel, nullptr), time));
  CHECK(refused(train, frame(FrameKind::kThread, "t"), time));
  CHECK(refused(train, frame(static_cast<FrameKind>(200), "k"), time));
  CHECK(refused(train, kernel, total(static_cast<MetricKind>(200), 1, 5, 5, 5)));
  CHECK(refused(train, kernel, total(MetricKind::kGpuTime, 0, 0, 0, 0)));
  CHECK(refused(train, kernel, total(MetricKind::kGpuTime, 2, 5, 1, 2)));  // a sum beyond the largest
  CHECK(refused(train, kernel, total(MetricKind::kGpuTime, 2, 5, 3, 4)));  // and below the smallest
  CHECK(refused(train, kernel, total(MetricKind::kGpuTime, 2, 5, 4, 1)));
  CHECK(leadline_monitor_book(nullptr, nullptr) == LEADLINE_ERROR_INVALID);
  program.take();
  CHECK(program.paths() == std::vector<std::string>{"main", "main/train"});
}

TEST_CASE("A place of a session that is over is none of the next one") {
  leadline_context before = 0;
  {
    RecordedProgram program;
    before = place_of("train");
  }
  RecordedProgram program;
  CHECK(place_of("validate") != before);
  CHECK(book(before, {frame(FrameKind::kKernel, "k")}, {}) == LEADLINE_ERROR_INVALID);
  measure_at(before, MetricKind::kWaitTime, 700);
  program.take();
  CHECK(program.measured("main/validate", MetricKind::kWaitTime).count == 0);
  CHECK(losses().total(LossKind::kGpuRecordUnattributed) == 1);
}

TEST_CASE("What was measured before a pause may be booked in it") {
  RecordedProgram program;
  const leadline_context train = place_of("train");
  program.pause();
  CHECK(book(train, {}, {total(MetricKind::kGpuTime, 1, 5, 5, 5)}) == LEADLINE_OK);
  program.resume();
  program.take();
  CHECK(program.measured("main/train", MetricKind::kGpuTime).sum == 5);
}

TEST_CASE("Nobody listens to bookings, and a callback makes none") {
  CHECK(book(LEADLINE_PLACE_THREAD, {}, {}) == LEADLINE_ERROR_UNAVAILABLE);
  static leadline_status nested = LEADLINE_OK;
  leadline_subscription id = 0;
  const auto hear = [](const leadline_event* event, void* user) {
    *static_cast<int*>(user) += event->of.booking.frame_count == 1 && event->of.booking.device == 0 ? 1 : 100;
    nested = book(LEADLINE_PLACE_THREAD, {}, {});
  };
  int heard = 0;
  REQUIRE(leadline_monitor_register(LEADLINE_DOMAIN_BOOKING, hear, &heard, &id) == LEADLINE_OK);
  leadline_context place = 1;
  CHECK(book(LEADLINE_PLACE_THREAD, {frame(FrameKind::kKernel, "k")}, {}, &place) == LEADLINE_OK);
  CHECK(place == 0);
  leadline_monitor_unregister(id);
  CHECK(heard == 1);
  CHECK(nested == LEADLINE_ERROR_UNAVAILABLE);
}

TEST_CASE("A booking of an older header is read as far as it goes") {
  RecordedProgram program;
  const leadline_path_frame kernel = frame(FrameKind::kKernel, "k");
  leadline_booking booking = leadline_booking_of(LEADLINE_PLACE_THREAD);
  booking.frames = &kernel;
  booking.frame_count = 1;
  booking.device = 3;
  booking.struct_size = offsetof(leadline_booking, device);
  CHECK(leadline_monitor_book(&booking, nullptr) == LEADLINE_OK);
  program.take();
  CHECK(program.paths() == std::vector<std::string>{"main", "main/k"});
  CHECK(program.collector.devices().rows().empty());
}

TEST_CASE("What somebody else has timed is in the window if it was asked for in it, on the thread that did it") {
  RecordedProgram program;
  FakeClock clock(1'000);
  const leadline_context train = place_of("train");
  leadline_context sine = 0;
  REQUIRE(book(train, {frame(FrameKind::kOperator, "sine")}, {}, &sine) == LEADLINE_OK);
  Monitor& monitor = Monitor::instance();
  const leadline_context pool = monitor.thread_place(uint64_t{1} << 62, "pool", 0, false);
  REQUIRE(pool != 0);
  const std::vector<int64_t> begins{1'500, 2'000, 2'500, 4'000};
  const std::vector<int64_t> durations{10, 20, -1, 40};
  CHECK(monitor.timed({sine, pool, 7, begins, durations}));  // there was no window yet
  clock.set(2'000);
  program.collector.window().open(100);
  clock.set(3'000);
  program.collector.window().close();
  CHECK(monitor.timed({sine, pool, 7, begins, durations}));
  CHECK_FALSE(monitor.timed({sine + (leadline_context{1} << 60), pool, 7, begins, durations}));
  std::vector<TraceEvent> found;
  program.collector.window().for_each_event([&](const TraceEvent& event) { found.push_back(event); });
  REQUIRE(found.size() == 2);  // the one from before has no part in it, and what has no end is none
  CHECK((found[0].start_ns == 2'000 && found[0].duration_ns == 20 && found[0].correlation == 7));
  CHECK((found[1].start_ns == 4'000 && found[1].duration_ns == 40));
  CHECK(found[0].thread != found[0].tree);
  CHECK(found[0].kind == EventKind::kOperator);
}
