#include "testing/scenario_text.h"

#include <fstream>
#include <sstream>
#include <thread>

namespace leadline::testing {
namespace {

ScenarioLine parse(const std::string& text) {
  ScenarioLine line;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) {
      line.words.push_back(word);
    } else {
      line.options[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  if (line.words.empty()) line.words.emplace_back();
  return line;
}

}  // namespace

std::int64_t ScenarioLine::number(const std::string& key, std::int64_t otherwise) const {
  const auto found = options.find(key);
  return found == options.end() ? otherwise : std::stoll(found->second);
}

std::string ScenarioLine::text(const std::string& key) const {
  const auto found = options.find(key);
  return found == options.end() ? std::string() : found->second;
}

bool ScenarioProgram::run(const ScenarioLine& line) {
  const std::string& verb = line.verb();
  const auto unsigned_number = [&](const char* key) { return static_cast<std::uint32_t>(line.number(key, 0)); };
  Stream on = nullptr;
  if (line.options.contains("stream"))
    on = stream(unsigned_number("stream"), static_cast<std::int32_t>(line.number("device", 0)));
  const auto bytes = static_cast<std::size_t>(line.number("bytes", 0));
  if (verb == "region" || verb == "phase") {
    names_.push_back(line.words[1]);
    open_.push_back(std::make_unique<Region>(names_.back().c_str(),
                                             verb == "phase" ? LEADLINE_REGION_PHASE : LEADLINE_REGION_USER));
  } else if (verb == "end") {
    open_.pop_back();
  } else if (verb == "launch") {
    const ScenarioLaunch what{line.words[1],
                              line.number("duration", 1000),
                              static_cast<std::uint32_t>(line.number("grid", 1)),
                              static_cast<std::uint32_t>(line.number("block", 32)),
                              static_cast<std::int32_t>(line.number("registers", 32)),
                              line.text("how")};
    for (std::int64_t i = line.number("times", 1); i > 0; --i) launch(what, on);
  } else if (verb == "copy") {
    copy(line.words[1] == "HtoD", bytes, on);
  } else if (verb == "set") {
    set(bytes, on);
  } else if (verb == "sync") {
    if (on) {
      synchronize(on);
    } else if (line.options.contains("event")) {
      synchronize_event(unsigned_number("event"));
    } else {
      synchronize_device();
    }
  } else if (verb == "record") {
    record(unsigned_number("event"), on);
  } else if (verb == "wait") {
    wait(unsigned_number("event"), on);
  } else if (verb == "alloc") {
    memory_[line.words[1]] = allocate(bytes);
  } else if (verb == "free") {
    free(memory_[line.words[1]]);
  } else if (verb == "capture") {
    begin_capture(on);
  } else if (verb == "captured") {
    graphs_[line.words[1]] = end_capture(on);
  } else if (verb == "instantiate") {
    graphs_[line.words[2]] = instantiate(graphs_[line.words[1]]);
  } else if (verb == "replay") {
    replay(graphs_[line.words[1]], on);
  } else if (verb == "destroy") {
    destroy(graphs_[line.words[1]], line.words.size() > 2);
  } else if (verb == "compute") {
    compute(std::stoll(line.words[1]));
  } else if (verb == "poll") {
    poll();
  } else {
    return other(line);
  }
  return true;
}

ScenarioResult run_scenario_in(const ScenarioWorld& world, const std::string& file) {
  ScenarioResult result;
  std::ifstream in(file);
  if (!in) {
    result.error = "The scenario " + file + " cannot be read.";
    return result;
  }
  const std::unique_ptr<ScenarioProgram> program = world.new_program();
  std::vector<std::string> metrics;
  std::vector<std::vector<ScenarioLine>> threads;
  bool collecting = false;
  const auto run_threads = [&] {
    std::vector<std::thread> running;
    for (const std::vector<ScenarioLine>& lines : threads) {
      running.emplace_back([&world, &lines] {
        const std::unique_ptr<ScenarioProgram> mine = world.new_program();
        for (const ScenarioLine& line : lines) mine->run(line);
      });
    }
    for (std::thread& thread : running) thread.join();
    threads.clear();
  };
  enum class Part { kProgram, kExpect, kLosses } part = Part::kProgram;
  for (std::string text; std::getline(in, text);) {
    if (part == Part::kProgram || text == "losses") {
      if (const auto hash = text.find('#'); hash != std::string::npos) text.erase(hash);
    }
    if (text.find_first_not_of(' ') == std::string::npos) continue;
    if (text == "losses") {
      part = Part::kLosses;
      continue;
    }
    if (part == Part::kExpect) {
      result.wanted += text + "\n";
      continue;
    }
    if (part == Part::kLosses) {
      result.wanted_losses += text + "\n";
      continue;
    }
    const ScenarioLine line = parse(text);
    const std::string& verb = line.verb();
    if (verb == "expect") {
      metrics.assign(line.words.begin() + 1, line.words.end());
      part = Part::kExpect;
    } else if (verb == "thread") {
      threads.emplace_back();
      collecting = true;
    } else if (verb == "together") {
      collecting = false;
      run_threads();
    } else if (collecting) {
      threads.back().push_back(line);
    } else if (!world.provider(line) && !program->run(line)) {
      result.error = "The scenario " + file + " has a line that says nothing known: " + text;
      break;
    }
  }
  ScenarioLine stop;
  stop.words = {"stop"};
  world.provider(stop);
  result.got = TestMonitor::folded(metrics);
  for (const auto& [kind, count] : TestMonitor::losses())
    result.got_losses += kind + " " + std::to_string(count) + "\n";
  return result;
}

}  // namespace leadline::testing
