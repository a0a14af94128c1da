// A cubin (machine code of NVIDIA's, an ELF file) read for what a place in it means: which source line, through which
// inlined calls.
//
// Never trusts the file: every offset and count is checked, and what is torn gives nothing. Lines come from .debug_line
// with the vendor's two extended operations, which say for a row the function it was inlined from and the row that
// called it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leadline::offline {

struct CodePlace {
  std::string_view function;  // mangled; empty where the file does not say
  std::string file;           // with its folder
  std::int32_t line = 0;      // 0 where unknown
};

class Cubin {
 public:
  struct Function {
    std::string_view name;  // mangled
    std::uint32_t section = 0;
    std::uint64_t begin = 0;  // in its section
    std::uint64_t size = 0;
    bool kernel = false;
  };

  Cubin(Cubin&&) = default;
  Cubin& operator=(Cubin&&) = default;
  Cubin(const Cubin&) = delete;  // views point into its bytes
  Cubin& operator=(const Cubin&) = delete;

  // Keeps the bytes. nullopt with one sentence in *error where they are no cubin.
  static std::optional<Cubin> read(std::string bytes, std::string* error);

  // By name; several of one name (local ones) stand in the order of the file.
  const std::vector<Function>& functions() const noexcept { return functions_; }
  // What the instruction `offset` bytes into a function was made from, the innermost function first; empty where the
  // file has no lines there.
  std::vector<CodePlace> at(std::string_view function, std::uint64_t offset) const;
  // The kernel whose code a function is part of, which is itself for a kernel; empty where there is none.
  std::string_view kernel_of(std::string_view function) const;
  bool has_lines() const noexcept { return !rows_.empty(); }
  // A function's machine code; empty where there is none.
  std::string_view code(std::string_view function) const;

 private:
  struct Section {
    std::uint32_t name = 0;
    std::uint32_t type = 0;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint32_t link = 0;
    std::uint32_t info = 0;
  };
  struct Symbol {
    std::uint32_t name = 0;
    std::uint8_t info = 0;
    std::uint8_t other = 0;
    std::uint16_t section = 0;
    std::uint64_t value = 0;
    std::uint64_t size = 0;
  };
  struct Row {
    std::uint64_t address = 0;
    std::uint32_t file = 0;
    std::int32_t line = 0;
    std::uint32_t context = 0;   // number of the calling row in its unit, from 1; 0: none
    std::uint32_t function = 0;  // in .debug_str, from 1; 0: not said; of a row without context it is one before
  };
  struct Unit {
    std::size_t first_row = 0;
    std::size_t first_file = 0;  // in files_
    std::size_t file_count = 0;
    std::uint32_t first_number = 1;  // of its files: 1 before DWARF 5
  };
  // Rows of one stretch of code, in the order of addresses; each row holds until the next.
  struct Sequence {
    std::uint32_t section = 0;
    std::uint32_t unit = 0;
    std::vector<std::uint32_t> rows;
    std::uint64_t end = 0;
  };
  struct Relocation {
    std::uint64_t offset = 0;
    std::uint32_t symbol = 0;
    std::uint64_t addend = 0;
  };
  class LineProgram;

  Cubin() = default;
  bool read_sections();
  void read_symbols();
  void read_lines();
  std::vector<Relocation> relocations_of(std::uint32_t section) const;
  std::string_view contents(const Section& section) const;
  std::string_view text(std::string_view strings, std::uint64_t offset) const;
  const Function* find(std::string_view name) const;

  std::string bytes_;
  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
  std::string_view symbol_names_;
  std::string_view section_names_;
  std::string_view debug_strings_;
  std::string_view line_strings_;
  std::vector<Function> functions_;
  std::vector<Row> rows_;
  std::vector<Unit> units_;
  std::vector<std::string> files_;
  std::vector<Sequence> sequences_;
};

}  // namespace leadline::offline
