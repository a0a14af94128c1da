// Names of copies between two devices of which it is known what joins them: "Memcpy PtoP (Device 0 -> Device 1, xGMI)".
//
// Runs on the thread that folds; made once for each pair, bounded by a constant.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>

#include "gpu/work.h"

namespace leadline::gpu {

class PeerCopies {
 public:
  static constexpr std::size_t kMostPairs = 4096;

  struct Named {
    std::string name;
    std::string detail;  // {"direction": "PtoP", "from": 0, "to": 1, "link": "xGMI"}
    std::uint64_t frame = 0;
  };
  // Null where the copy does not tell its pair, or there is no room for another one.
  const Named* of(const Work& work);

 private:
  struct Pair {
    std::int32_t from = -1;
    std::int32_t to = -1;
    const char* link = nullptr;
    auto operator<=>(const Pair&) const = default;
  };
  std::map<Pair, Named> named_;  // its elements stay where they are
};

}  // namespace leadline::gpu
