// For tests: planes of a profile (XSpace), event by event.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "xla/proto_writer.h"

namespace leadline::xla::test {

// A plane whose events tell what `stats` says; names of lines, events and statistics get numbers as they come.
class Plane {
 public:
  explicit Plane(std::string_view name) { plane_.bytes(2, name); }

  struct Stat {
    const char* name;
    int64_t number = 0;
    const char* text = nullptr;
  };
  struct Event {
    const char* name;
    uint64_t start_ps;
    uint64_t duration_ps;
    std::vector<Stat> stats;
  };

  Plane& line(const char* name, const std::vector<Event>& events) {
    Message line;
    line.bytes(2, name);
    for (const Event& event : events) {
      Message message;
      message.number(1, key(names_, event.name)).number(2, event.start_ps).number(3, event.duration_ps);
      for (const Stat& stat : event.stats) message.message(4, told(stat));
      line.message(4, message);
    }
    plane_.message(3, line);
    return *this;
  }
  // What all events of a name tell, and the name that people are shown.
  Plane& of_name(const char* name, const char* shown, const std::vector<Stat>& stats) {
    Message described;
    described.bytes(2, name).bytes(4, shown);
    for (const Stat& stat : stats) described.message(5, told(stat));
    described_.emplace(name, described);
    return *this;
  }
  Message message() {
    Message whole = plane_;
    for (const auto& [name, number] : names_) {
      const auto known = described_.find(name);
      whole.message(4, Message().number(1, number).message(
                           2, known != described_.end() ? known->second : Message().bytes(2, name)));
    }
    for (const auto& [name, number] : stats_)
      whole.message(5, Message().number(1, number).message(2, Message().bytes(2, name)));
    return whole;
  }

 private:
  static uint64_t key(std::map<std::string, uint64_t>& known, const char* name) {
    return known.emplace(name, known.size() + 1).first->second;
  }
  Message told(const Stat& stat) {
    Message message;
    message.number(1, key(stats_, stat.name));
    return stat.text != nullptr ? message.bytes(5, stat.text) : message.number(4, static_cast<uint64_t>(stat.number));
  }
  Message plane_;
  std::map<std::string, uint64_t> names_, stats_;
  std::map<std::string, Message> described_;
};

}  // namespace leadline::xla::test
