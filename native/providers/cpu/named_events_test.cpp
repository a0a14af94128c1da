#include "providers/cpu/named_events.h"

#include <doctest/doctest.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include <fstream>

#include "providers/cpu/counter_kinds.h"

using namespace leadline::cpu;

namespace {

// What the kernel says of a processor's counters, as files.
class Devices {
 public:
  Devices() {
    put("cpu/type", "4\n");
    put("cpu/format/event", "config:0-7\n");
    put("cpu/format/umask", "config:8-15\n");
    put("cpu/format/split", "config1:0-3,8-11\n");
    put("cpu/format/strange", "elsewhere:0-3\n");
    put("cpu/events/cache-misses", "event=0x2e,umask=0x41\n");
    put("cpu/events/circle", "circle\n");
  }
  ~Devices() { std::filesystem::remove_all(folder); }
  void put(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << text;
  }
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("named_events_test_" + std::to_string(getpid()));
};

}  // namespace

TEST_CASE("Events are read as perf reads them") {
  const Devices devices;
  std::string why;
  const auto code = [&](const char* name) { return event_named(name, &why, devices.folder); };
  REQUIRE(code("r1c2"));
  CHECK(code("r1c2")->type == PERF_TYPE_RAW);
  CHECK(code("r1c2")->config == 0x1c2);
  CHECK(code("rffffffffffffffff")->config == ~uint64_t{0});
  REQUIRE(code("cpu/event=0x3c,umask=1/"));
  CHECK(code("cpu/event=0x3c,umask=1/")->type == 4);
  CHECK(code("cpu/event=0x3c,umask=1/")->config == 0x13c);
  CHECK(code("cpu/event=60/")->config == 0x3c);
  CHECK(code("cpu/cache-misses/")->config == 0x412e);
  CHECK(code("cpu/split=0xa5/")->config1 == 0xa05);
  CHECK(code("cpu/config=7,config2=9/")->config2 == 9);
  CHECK(why.empty());
}

TEST_CASE("What means no event here says why in a sentence, or is a name like any other") {
  const Devices devices;
  std::string why;
  for (const char* name :
       {"cpu/event=0x100/", "cpu/event=/", "cpu/event=zero/", "cpu/nothing/", "cpu/strange=1/", "cpu/circle/", "cpu//",
        "cpu/", "cpu/event=1", "cpu/event=1/u", "cpu/../cpu/", "gpu/event=1/", "../cpu/event=1/", "/", "PAPI_FP_OPS"}) {
    CAPTURE(name);
    CHECK_FALSE(event_named(name, &why, devices.folder));
    CHECK(why.ends_with("."));
    CHECK(why.find(std::string_view(name).substr(0, 3)) != std::string::npos);
  }
  for (const char* name : {"", "r", "rubbish", "r12345678123456781", "cycle", "r1c2 "}) {
    CAPTURE(name);
    CHECK_FALSE(event_named(name, &why, devices.folder));
    CHECK(why.empty());
  }
}

TEST_CASE("libpfm's names are looked up with libpfm, where it is") {
  std::string why;
  const auto faults = event_named("perf::PAGE-FAULTS", &why);
  if (!faults) {
    CHECK(why.find("libpfm4") != std::string::npos);
    return;
  }
  CHECK(faults->type == PERF_TYPE_SOFTWARE);
  CHECK(faults->config == PERF_COUNT_SW_PAGE_FAULTS);
  CHECK_FALSE(event_named("perf::NO-SUCH-THING", &why));
  CHECK(why.find("perf::NO-SUCH-THING (libpfm: ") != std::string::npos);
}

TEST_CASE("PAPI's names of what perf has are perf's") {
  CHECK(perf_name_of_papi("PAPI_TOT_CYC") == "cycles");
  CHECK(perf_name_of_papi("PAPI_NO_SUCH").empty());
  for (const char* name : {"PAPI_TOT_CYC", "PAPI_TOT_INS", "PAPI_REF_CYC", "PAPI_BR_INS", "PAPI_BR_MSP", "PAPI_L1_LDM",
                           "PAPI_L1_ICM", "PAPI_L3_LDM", "PAPI_TLB_IM"})
    CHECK(find_counter(perf_name_of_papi(name)) != nullptr);
}
