#include "offline/event_json.h"

#include <string>

namespace leadline::offline {

namespace {

struct Named {
  std::string_view key;
  Argument argument;
  bool detail;
};

constexpr std::array kArguments = {
    Named{"Sequence number", Argument::sequence, false},
    Named{"Fwd thread id", Argument::forward_thread, false},
    Named{"correlation", Argument::correlation, false},
    Named{"device", Argument::device, false},
    Named{"stream", Argument::stream, false},
    Named{"bytes", Argument::bytes, false},
    Named{"wait_on_stream", Argument::wait_on_stream, false},
    Named{"wait_on_cuda_event_record_corr_id", Argument::wait_on_record, false},
    Named{"name", Argument::name, false},
    Named{"Bytes", Argument::memory_bytes, false},
    Named{"Device Type", Argument::device_type, false},
    Named{"Input Dims", Argument::none, true},
    Named{"Input dims", Argument::none, true},
    Named{"Input type", Argument::none, true},
    Named{"Input Types", Argument::none, true},
    Named{"Concrete Inputs", Argument::none, true},
    Named{"Concrete Args", Argument::none, true},
    Named{"Collective name", Argument::none, true},
    Named{"Process Group Name", Argument::none, true},
    Named{"Process Group Description", Argument::none, true},
    Named{"Process Group Ranks", Argument::none, true},
    Named{"Group size", Argument::none, true},
    Named{"Seq", Argument::none, true},
    Named{"In msg nelems", Argument::none, true},
    Named{"Out msg nelems", Argument::none, true},
    Named{"dtype", Argument::none, true},
    Named{"blocks per SM", Argument::none, true},
    Named{"grid", Argument::none, true},
    Named{"block", Argument::none, true},
    Named{"registers per thread", Argument::none, true},
    Named{"shared memory", Argument::none, true},
    Named{"est. achieved occupancy %", Argument::none, true},
};

constexpr size_t kLongest = 33;
// By length: most keys of a trace are compared with one or two.
constexpr auto kByLength = [] {
  std::array<std::array<const Named*, 5>, kLongest + 1> found{};
  for (const Named& named : kArguments) {
    size_t place = 0;
    while (found[named.key.size()][place] != nullptr) ++place;
    found[named.key.size()][place] = &named;
  }
  return found;
}();

const Named* argument_of(std::string_view key) noexcept {
  if (key.size() > kLongest) return nullptr;
  for (const Named* named : kByLength[key.size()]) {
    if (named == nullptr || named->key == key) return named;
  }
  return nullptr;
}

Scan scan_arguments(JsonScanner& scanner, Arguments& args) {
  args.values.fill({});
  args.details.clear();
  args.object = true;
  std::string plain;
  return scanner.members([&](std::string_view key) {
    if (key.find('\\') != std::string_view::npos) key = plain = unescaped(key);
    JsonValue value;
    scanner.strict();
    const Scan scan = scanner.value(value);
    const Named* const named = scan == Scan::ok ? argument_of(key) : nullptr;
    if (named == nullptr) return scan;
    if (named->argument != Argument::none) args.values[static_cast<size_t>(named->argument)] = value;
    if (named->detail && !scanner.loose()) {  // what is no JSON is not handed on as such
      const char* const value_begin = value.type == JsonType::text ? value.raw.data() - 1 : value.raw.data();
      args.details.emplace_back(named->key,
                                std::string_view(value_begin, static_cast<size_t>(scanner.at() - value_begin)));
    }
    return scan;
  });
}

}  // namespace

Scan scan_event(JsonScanner& scanner, Event& event) {
  if (*scanner.at() != '{') {
    JsonValue other;
    event.object = false;
    return scanner.value(other);
  }
  event.phase = event.category = event.name = event.ts = event.dur = event.pid = event.tid = event.id = {};
  event.args.values.fill({});
  event.args.details.clear();
  event.args.object = false;
  event.object = true;
  std::string plain;
  return scanner.members([&](std::string_view key) {
    if (key.find('\\') != std::string_view::npos) key = plain = unescaped(key);
    if (key == "args") {
      event.args.object = false;
      JsonValue other;
      return *scanner.at() == '{' ? scan_arguments(scanner, event.args) : scanner.value(other);
    }
    JsonValue value;
    const Scan scan = scanner.value(value);
    if (key == "ph")
      event.phase = value;
    else if (key == "cat")
      event.category = value;
    else if (key == "name")
      event.name = value;
    else if (key == "ts")
      event.ts = value;
    else if (key == "dur")
      event.dur = value;
    else if (key == "pid")
      event.pid = value;
    else if (key == "tid")
      event.tid = value;
    else if (key == "id")
      event.id = value;
    return scan;
  });
}

}  // namespace leadline::offline
