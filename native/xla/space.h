// A profile of XLA (XSpace, `.xplane.pb`) as tables. Field numbers as in xla/tsl/profiler/protobuf/xplane.proto,
// unchanged from jaxlib 0.4.38 to 0.12 and TensorFlow 2.18 to 2.21.
//
// Of the statistics of events only those that the reader asks for are kept, so that a file of 100 MB is read in seconds
// and in a few times its size.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace leadline::xla {

// What an event does not say.
constexpr int64_t kUnknown = INT64_MIN;
constexpr uint32_t kNoText = 0;

struct Wanted {
  std::vector<std::string> numbers;  // "name*1000": thousandths of `name`, which is a share
  std::vector<std::string> texts;
};

class Space {
 public:
  struct Plane {
    std::string_view name;
    std::vector<std::pair<std::string_view, std::string>> stats;  // as text
  };
  struct Line {
    uint32_t plane = 0;
    int64_t id = 0;
    std::string_view name;
    int64_t timestamp_ns = 0;  // where the events of the line count from
    int32_t device = -1;       // whose plane it is; -1: the host's
    int32_t stream = -1;       // of a line that tells work itself; -1: of the host, or drawn from other lines
  };
  // An HloProto that the profile carries, with the number that events call it by.
  struct Program {
    int64_t id = 0;
    std::string_view name;
    std::string_view module;  // bytes of the HloModuleProto
  };
  // One row per event, in the order of the file.
  struct Events {
    std::vector<uint32_t> line;
    std::vector<uint32_t> name;     // in strings()
    std::vector<int64_t> start_ps;  // since base_ns()
    std::vector<int64_t> duration_ps;
    // By Wanted::numbers and Wanted::texts (in strings()); empty where no event has that statistic.
    std::vector<std::vector<int64_t>> numbers;
    std::vector<std::vector<uint32_t>> texts;
    size_t size() const noexcept { return line.size(); }
    int64_t number(size_t column, size_t row) const noexcept {
      return numbers[column].empty() ? kUnknown : numbers[column][row];
    }
    uint32_t text(size_t column, size_t row) const noexcept {
      return texts[column].empty() ? kNoText : texts[column][row];
    }
  };

  // `bytes` must live as long. `problem`: a sentence where they are no profile; what could be read before the damage
  // stays.
  Space(std::string_view bytes, Wanted wanted, std::string* problem);
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;

  const std::vector<Plane>& planes() const noexcept { return planes_; }
  const std::vector<Line>& lines() const noexcept { return lines_; }
  const std::vector<Program>& programs() const noexcept { return programs_; }
  const Events& events() const noexcept { return events_; }
  Events take_events() noexcept { return std::move(events_); }
  const std::deque<std::string>& strings() const noexcept { return strings_; }
  // What the profiler itself says went wrong.
  const std::vector<std::string_view>& complaints() const noexcept { return complaints_; }
  // The machines that it was recorded on; most profiles name none.
  const std::vector<std::string_view>& hosts() const noexcept { return hosts_; }
  // The earliest timestamp of a line that has events.
  int64_t base_ns() const noexcept { return base_ns_; }
  // Row of a wanted statistic; -1 for one that was not asked for.
  int number_column(std::string_view name) const noexcept;
  int text_column(std::string_view name) const noexcept;

 private:
  struct Stat {
    int number = -1;  // columns
    int text = -1;
    double factor = 1;
    std::string_view name;
  };
  struct Value {
    int column = -1;
    bool is_text = false;
    int64_t number = kUnknown;
    uint32_t text = kNoText;
  };
  struct EventName {
    uint32_t name = kNoText;
    std::vector<Value> values;  // of all events of this name
  };
  struct Names {
    std::unordered_map<int64_t, EventName> events;
    std::unordered_map<int64_t, Stat> stats;
  };

  bool read_plane(std::string_view bytes);
  bool read_names(std::string_view bytes, Names* names);
  bool read_event_name(std::string_view bytes, Names* names);
  bool read_line(std::string_view bytes, const Names& names);
  bool read_event(std::string_view bytes, const Names& names, uint32_t line);
  bool read_stat(std::string_view bytes, const Names& names, Value* value, std::string_view* raw);
  void tell_devices();
  void tell_operations();
  void expect(size_t more);
  void put(size_t row, const Value& value);
  uint32_t text(std::string_view value);

  Wanted wanted_;
  std::vector<Plane> planes_;
  std::vector<Line> lines_;
  std::vector<Program> programs_;
  std::vector<std::string_view> complaints_;
  std::vector<std::string_view> hosts_;
  Events events_;
  std::deque<std::string> strings_{std::string()};
  std::unordered_map<std::string_view, uint32_t> known_;
  int64_t base_ns_ = 0;
};

}  // namespace leadline::xla
