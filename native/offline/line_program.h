// Line number programs of DWARF 2 to 5 (section .debug_line), with what NVIDIA adds for inlined functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace leadline::offline {

struct LineSections {
  std::string_view lines;         // .debug_line
  std::string_view strings;       // .debug_str
  std::string_view line_strings;  // .debug_line_str
};

struct LineRow {
  std::uint64_t address = 0;
  std::uint32_t section = 0;  // of the code
  std::uint32_t file = 0;
  std::int32_t line = 0;
  std::uint32_t context = 0;   // number of the calling row in its unit, from 1; 0: none
  std::uint32_t function = 0;  // in .debug_str, from 1; 0: not said
  bool ends = false;           // its sequence; it holds for nothing
};

struct LineUnit {
  std::vector<LineRow> rows;  // in the order of the program, which is how rows are numbered
  std::vector<std::string> files;
  std::uint32_t first_file = 1;  // number of the first of them
};

// The section and the address that a set address at `offset` of .debug_line means; false: none is known.
using Relocated = std::function<bool(std::uint64_t offset, std::uint32_t* section, std::uint64_t* address)>;

// Reads until the section ends or makes no sense any more; what was read until then is told.
void read_line_programs(const LineSections& from, const Relocated& relocated,
                        const std::function<void(LineUnit&&)>& told);

}  // namespace leadline::offline
