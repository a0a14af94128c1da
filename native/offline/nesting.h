// Which span stands inside which, of one thread. May throw std::bad_alloc only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace leadline::offline {

// Row of the enclosing span (-1 for none) and of the outermost one.
struct Nesting {
  std::vector<int64_t> parent, root;
};

// Spans as [start, end), sorted by start and the longest first. One that goes on after the span around it has ended
// stands in that span all the same. What is behind the shorter of the two columns is left out.
Nesting nesting(std::span<const int64_t> start, std::span<const int64_t> end);

}  // namespace leadline::offline
