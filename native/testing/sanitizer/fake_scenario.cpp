// A scenario as text, one thing a line; `#` begins a comment.
//
//   release 13.0               points of TMA came with 13.3
//   driver mismatched          every call that needs the driver is refused       taken    another tool has subscribed
//   (so
//                              has one from the start with FAKE_SANITIZER_TAKEN in the environment)
//   memory BYTES               so much is left on the device
//   context A [device=1]       destroy A
//   kernel gemm                the accesses that follow are its
//     read weights first=0 count=1024 stride=4 bytes=4 [pc=16] [point=14]
//     write out count=256 [value=0x7fc00000]
//     dies                     its threads end without an exit
//   module m context=A functions=gemm,copy         lazy m functions=other          unload m
//   alloc weights context=A bytes=4096 [async=1]   free weights [async=1]
//   launch gemm module=m stream=7 grid=2 block=64 [times=3]
//   replay gemm,copy module=m stream=7 [upload=1]  the nodes of a graph
//   hold A stream=7            release-stream A stream=7   what is queued waits
//   thread                     the lines that follow run on a thread of their own, all of them at "together"
//   wait                       until every stream is done
//   reset

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "testing/sanitizer/fake_device.h"

namespace leadline::testing::sanitizer {
namespace {

struct Line {
  int number = 0;
  std::vector<std::string> words;
  std::map<std::string, std::string> options;

  std::string text(const std::string& key, const std::string& otherwise = "") const {
    const auto found = options.find(key);
    return found == options.end() ? otherwise : found->second;
  }
  std::uint64_t of(const std::string& key, std::uint64_t otherwise) const {
    const auto found = options.find(key);
    return found == options.end() ? otherwise : std::strtoull(found->second.c_str(), nullptr, 0);
  }
  const std::string& word(std::size_t at) const { return words.at(at); }
};

Line parse(const std::string& text, int number) {
  Line line;
  line.number = number;
  std::istringstream in(text.substr(0, text.find('#')));
  for (std::string word; in >> word;) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) {
      line.words.push_back(word);
    } else {
      line.options[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  return line;
}

std::vector<std::string> list(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

Dims dims_of(const Line& line) {
  return Dims{static_cast<std::uint32_t>(line.of("grid", 1)), static_cast<std::uint32_t>(line.of("block", 32))};
}

bool accesses(const Line& line, Kernel* kernel) {
  const std::string& verb = line.word(0);
  if (verb == "dies" && kernel != nullptr) return kernel->dies = true;
  if ((verb != "read" && verb != "write") || kernel == nullptr) return false;
  DrawnAccess access;
  access.memory = line.word(1);
  access.point = static_cast<abi::Point>(line.of("point", static_cast<std::uint64_t>(abi::Point::kGlobal)));
  access.first = line.of("first", 0);
  access.count = line.of("count", 1);
  access.bytes = static_cast<std::uint32_t>(line.of("bytes", 4));
  access.stride = line.of("stride", access.bytes);
  access.flags = verb == "read" ? 1 : 2;
  access.value = line.of("value", 0);
  access.pc = line.of("pc", 16 * (kernel->accesses.size() + 1));
  kernel->accesses.push_back(access);
  return true;
}

bool behaviour(const Line& line, FakeDevice& device) {
  const std::string& verb = line.word(0);
  if (verb == "release") {
    device.last_point = std::strtod(line.word(1).c_str(), nullptr) < 13.29 ? 40 : 47;
  } else if (verb == "driver") {
    device.refuses = line.word(1) == "mismatched" ? abi::kNotInitialized : abi::kSuccess;
  } else if (verb == "taken") {
    device.taken = true;
  } else if (verb == "memory") {
    device.memory_left = std::strtoll(line.word(1).c_str(), nullptr, 0);
  } else if (verb == "reset") {
    device.reset();
  } else {
    return false;
  }
  return true;
}

bool program(const Line& line, FakeDevice& device) {
  const std::string& verb = line.word(0);
  if (verb == "context") {
    device.context(line.word(1), static_cast<std::int32_t>(line.of("device", 0)));
  } else if (verb == "destroy") {
    device.destroy_context(line.word(1));
  } else if (verb == "module") {
    device.module(line.word(1), line.text("context", "A"), list(line.text("functions")), line.text("image", "cubin"));
  } else if (verb == "lazy") {
    device.lazy(line.word(1), list(line.text("functions")));
  } else if (verb == "unload") {
    device.unload(line.word(1));
  } else if (verb == "alloc") {
    device.alloc(line.word(1), line.text("context", "A"), line.of("bytes", 0), line.of("async", 0) != 0);
  } else if (verb == "free") {
    device.free(line.word(1), line.of("async", 0) != 0);
  } else if (verb == "launch") {
    for (std::uint64_t i = line.of("times", 1); i > 0; --i) {
      device.launch(line.word(1), line.text("module", "m"), line.text("stream", "1"), dims_of(line));
    }
  } else if (verb == "replay") {
    device.replay(list(line.word(1)), line.text("module", "m"), line.text("stream", "1"), dims_of(line),
                  line.of("upload", 0) != 0);
  } else if (verb == "hold" || verb == "release-stream") {
    device.hold(line.word(1), line.text("stream", "1"), verb == "hold");
  } else if (verb == "wait") {
    device.synchronize();
  } else {
    return false;
  }
  return true;
}

int play(const std::string& text) {
  FakeDevice& device = FakeDevice::instance();
  std::istringstream in(text);
  std::vector<std::vector<Line>> threads;
  bool collecting = false;
  Kernel* kernel = nullptr;
  int number = 0;
  for (std::string written; std::getline(in, written);) {
    const Line line = parse(written, ++number);
    if (line.words.empty()) continue;
    const std::string& verb = line.word(0);
    if (verb == "thread") {
      threads.emplace_back();
      collecting = true;
    } else if (verb == "together") {
      std::vector<std::thread> running;
      running.reserve(threads.size());
      for (const auto& lines : threads) {
        running.emplace_back([&device, &lines] {
          for (const Line& one : lines) program(one, device);
        });
      }
      for (std::thread& one : running) one.join();
      threads.clear();
      collecting = false;
    } else if (collecting) {
      threads.back().push_back(line);
    } else if (verb == "kernel") {
      kernel = &device.kernel(line.word(1));
      kernel->accesses.clear();
      kernel->dies = false;
    } else if (!accesses(line, kernel) && !behaviour(line, device) && !program(line, device)) {
      return number;
    }
  }
  return 0;
}

}  // namespace
}  // namespace leadline::testing::sanitizer

using leadline::testing::sanitizer::FakeDevice;

extern "C" __attribute__((visibility("default"))) int fake_sanitizer_play(const char* text) {
  try {
    return leadline::testing::sanitizer::play(text);
  } catch (const std::exception&) {
    return -1;
  }
}
extern "C" __attribute__((visibility("default"))) std::uint64_t fake_sanitizer_calls(const char* function) {
  return FakeDevice::instance().calls(function);
}
extern "C" __attribute__((visibility("default"))) std::uint64_t fake_sanitizer_allocations() {
  return FakeDevice::instance().held_allocations();
}
