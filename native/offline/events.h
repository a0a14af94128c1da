// Events of a Chrome trace, as PyTorch's Kineto writes them, from JSON in pieces into columns. What an event means is
// decided later (python/leadline/trace/event_types.py); here is only what the file says. May throw std::bad_alloc only.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "offline/event_json.h"
#include "offline/interner.h"

namespace leadline::offline {

// By the event's `cat`; python/leadline/trace/kineto.py lists them in the same order.
// Other ones are known and not needed; an unknown one is decided event by event.
enum class Category : uint8_t { operation, region, call, kernel, copy, set, module, python, sync, other, unknown };

// Events of a category that is not known: how many were taken for what their name and numbers say, and how many not.
struct Unfamiliar {
  std::string category;
  int64_t taken = 0, left_out = 0;
};

// Rows in the order of the file; times in microseconds of the file; -1 for what an event does not say, 0 for
// correlation and bytes. `track`: thread of device work whose process is not the number of its device, which is how
// files that were put together tell the devices of their programs apart; -1 where it is.
struct EventColumns {
  std::vector<double> ts, dur;
  std::vector<uint8_t> category;
  std::vector<int32_t> name, thread, track, detail;
  std::vector<int64_t> device, stream, correlation, sequence, forward_thread, bytes;
};

// Events that could not be used, and how long they lasted as far as that could be read.
struct Lost {
  int64_t events = 0;
  double dur = 0;
};

// Ends of arrows from forward operators to their backward ones.
struct FlowColumns {
  std::vector<int64_t> id;
  std::vector<uint8_t> finish;
  std::vector<int32_t> thread;
  std::vector<double> ts;
};

// Which stream or event a call waited for, by the call's correlation id.
struct SyncColumns {
  std::vector<int64_t> correlation, waiting, awaited, record;
};

// Begins and ends of spans that are told apart (phases B and E), in the order of the file: whose thread, when, and the
// row of the event that began; kEnd for an end, kUncounted for the begin of what does not count.
struct BorderColumns {
  static constexpr int64_t kUncounted = -1, kEnd = -2;
  std::vector<int64_t> row;
  std::vector<int32_t> track;
  std::vector<double> ts;
};

struct MemoryColumns {
  std::vector<double> ts;
  std::vector<int64_t> size, device_type;
};

// A thread's process is a number, or a text: then `text_process` is its row in `names`.
struct ThreadColumns {
  std::vector<int64_t> process, tid;
  std::vector<int32_t> text_process, name;
};

struct ReadOptions {
  double low_us = -std::numeric_limits<double>::infinity();  // what overlaps this range of the file's clock is kept
  double high_us = std::numeric_limits<double>::infinity();
  bool marks_only = false;  // only the profiler's marks around steps and updates
  bool python = false;      // calls of Python functions that are no modules, too
};

class EventReader {
 public:
  // One event; what does not end within it is damage.
  static constexpr size_t kEventLimit = size_t{8} << 20;

  explicit EventReader(ReadOptions options) : options_(options) {}

  // More of the inside of the array of events; true once the array has ended. `last`: nothing follows.
  bool feed(std::string_view data, bool last);
  // What stands behind the array's end.
  std::string_view rest() const noexcept { return std::string_view(buffer_).substr(begin_); }

  EventColumns events;
  FlowColumns flows;
  SyncColumns syncs;
  BorderColumns borders;
  MemoryColumns memory;
  ThreadColumns threads;
  std::vector<Unfamiliar> unfamiliar;
  Interner names;
  Interner details;      // members of `args` that tell of shapes, types, groups and grids, as JSON without its braces
  Lost malformed;        // lack what they need
  Lost asynchronous;     // spans on no thread, which may end anywhere
  Lost broken;           // are no JSON, and were stepped over
  bool damaged = false;  // what is no JSON was stepped over, events or not
  bool legacy = false;   // every range is called an operator, as torch 1.8 to 1.11 and its EventList do

 private:
  struct ThreadKey {
    int64_t process;
    int32_t text_process;
    int64_t tid;
    bool operator==(const ThreadKey&) const = default;
  };
  struct ThreadHash {
    size_t operator()(const ThreadKey& key) const noexcept {
      return static_cast<size_t>(key.process * 0x9E3779B9 + key.tid * 31 + key.text_process);
    }
  };

  // False when the event lacks what it needs.
  bool take(const Event& event);
  bool take_span(const Event& event, bool open = false);
  bool take_border(const Event& event, bool end);
  bool counts(const Event& event);
  bool take_flow(const Event& event);
  bool take_sync(const Event& event);
  bool take_memory(const Event& event);
  bool take_thread_name(const Event& event);
  bool thread_row(const Event& event, int32_t& row);
  int32_t detail_row(const Event& event);
  int32_t name_row(std::string_view raw);
  Category category_of(const JsonValue& value);
  Category category_named(std::string_view raw);
  Category category_of_unknown(const Event& event);
  Category category_of_event_list(const Event& event) const;
  // Steps over what is no JSON; false where the next event has not been read yet.
  bool step_over(bool last);
  size_t next_event(size_t from) const noexcept;
  void lose(Lost& lost, const Event& event) const;
  int64_t correlation_of(const JsonValue& value);

  ReadOptions options_;
  std::string buffer_;
  size_t begin_ = 0;
  bool seeking_ = false;        // from damage on, until the next object begins
  bool behind_damage_ = false;  // until an object is an event
  Interner flow_ids_, correlation_ids_, tracks_;
  std::unordered_map<ThreadKey, int32_t, ThreadHash> thread_rows_;
  std::string last_process_, last_tid_;  // of the last event, as in the file: most follow one of the same thread
  int32_t last_row_ = -1;
  static constexpr size_t kRemembered = 16;  // a trace has about ten
  std::vector<std::pair<std::string, Category>> categories_;
  std::string scratch_;
};

}  // namespace leadline::offline
