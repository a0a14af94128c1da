// One event of a Chrome trace as it stands in the file: its members, and those of its `args` that anybody needs.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "offline/json.h"

namespace leadline::offline {

enum class Argument : uint8_t {
  sequence,
  forward_thread,
  correlation,
  device,
  stream,
  bytes,
  wait_on_stream,
  sync_kind,
  wait_on_record,
  name,
  memory_bytes,
  device_type,
  count,
  none
};

struct Arguments {
  std::array<JsonValue, static_cast<size_t>(Argument::count)> values;
  std::vector<std::pair<std::string_view, std::string_view>> details;  // key and value as in the file
  bool object = false;

  const JsonValue& operator[](Argument argument) const noexcept { return values[static_cast<size_t>(argument)]; }
};

// Views into the text that was scanned.
struct Event {
  JsonValue phase, category, name, ts, dur, pid, tid, id;
  Arguments args;
  bool object = false;  // what stands in the array is an object at all
};

// Reads one member of the array of events. Of two members with one name the last counts, as in Python.
Scan scan_event(JsonScanner& scanner, Event& event);

}  // namespace leadline::offline
