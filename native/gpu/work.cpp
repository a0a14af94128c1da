#include "gpu/work.h"

#include <array>
#include <string>

namespace leadline::gpu {
namespace {

// Kineto's words.
constexpr std::array<const char*, kDirections> kDirectionNames{"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                                               "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
constexpr std::array<const char*, kMemories> kMemoryNames{
    "Unknown", "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static", "Host"};

constexpr std::size_t at(Direction direction) { return static_cast<std::size_t>(direction); }
constexpr std::size_t at(Memory memory) { return static_cast<std::size_t>(memory); }

// All names, made once: a copy's name must not be built while records are folded.
struct Names {
  std::array<std::string, kDirections * kMemories * kMemories> copies;
  std::array<std::string, kMemories> sets;
  Names() {
    std::size_t next = 0;
    for (const char* direction : kDirectionNames) {
      for (const char* from : kMemoryNames) {
        for (const char* to : kMemoryNames) {
          copies[next++] = std::string("Memcpy ") + direction + " (" + from + " -> " + to + ")";
        }
      }
    }
    for (std::size_t i = 0; i < kMemories; ++i) sets[i] = std::string("Memset (") + kMemoryNames[i] + ")";
  }
};

const Names& names() {
  static const Names made;
  return made;
}

}  // namespace

const char* copy_name(const Work& work) noexcept {
  return names().copies[(at(work.direction) * kMemories + at(work.source)) * kMemories + at(work.destination)].c_str();
}

const char* set_name(const Work& work) noexcept { return names().sets[at(work.destination)].c_str(); }

const char* copy_detail(const Work& work) noexcept {
  // One literal per direction: the name says the rest, and a detail must not differ under one name.
  switch (work.direction) {
    case Direction::kHtoD:
      return "{\"direction\": \"HtoD\"}";
    case Direction::kDtoH:
      return "{\"direction\": \"DtoH\"}";
    case Direction::kDtoD:
      return "{\"direction\": \"DtoD\"}";
    case Direction::kPtoP:
      return "{\"direction\": \"PtoP\"}";
    case Direction::kHtoH:
      return "{\"direction\": \"HtoH\"}";
    default:
      return nullptr;
  }
}

}  // namespace leadline::gpu
