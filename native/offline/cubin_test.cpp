// Hand-made files: what a line program says through relocations and inlined calls, and what is torn. Real cubins
// against NVIDIA's own disassembler are in tests/profiles/test_cubin.py.
#include "offline/cubin.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <string>

using namespace leadline::offline;

namespace {

template <class T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

struct Section {
  std::string name;
  std::uint32_t type = 1;
  std::string bytes;
  std::uint32_t link = 0;
  std::uint32_t info = 0;
};

std::string symbol(std::uint32_t name, std::uint8_t info, std::uint8_t other, std::uint16_t section,
                   std::uint64_t value, std::uint64_t size) {
  std::string made;
  put(made, name);
  put(made, info);
  put(made, other);
  put(made, section);
  put(made, value);
  put(made, size);
  return made;
}

std::string elf(std::vector<Section> sections) {
  std::string names(1, '\0');
  sections.insert(sections.begin(), Section{"", 0, "", 0, 0});
  sections.push_back({".shstrtab", 3, "", 0, 0});
  std::vector<std::uint32_t> at;
  for (const Section& section : sections) {
    at.push_back(static_cast<std::uint32_t>(names.size()));
    names += section.name + '\0';
  }
  sections.back().bytes = names;
  std::string made(
      "\x7f"
      "ELF\x02\x01\x01",
      7);
  made.resize(16);
  put<std::uint16_t>(made, 2);
  put<std::uint16_t>(made, 190);
  made.resize(40);
  std::uint64_t table = 64;
  for (const Section& section : sections) table += section.bytes.size();
  put(made, table);
  made.resize(58);
  put<std::uint16_t>(made, 64);
  put(made, static_cast<std::uint16_t>(sections.size()));
  put(made, static_cast<std::uint16_t>(sections.size() - 1));
  std::vector<std::uint64_t> offsets;
  for (const Section& section : sections) {
    offsets.push_back(made.size());
    made += section.bytes;
  }
  for (std::size_t i = 0; i < sections.size(); ++i) {
    std::string header;
    put(header, at[i]);
    put(header, sections[i].type);
    put<std::uint64_t>(header, 0);
    put<std::uint64_t>(header, 0);
    put(header, offsets[i]);
    put<std::uint64_t>(header, sections[i].bytes.size());
    put(header, sections[i].link);
    put(header, sections[i].info);
    put<std::uint64_t>(header, 1);
    put<std::uint64_t>(header, 0);
    made += header;
  }
  return made;
}

// A kernel of four instructions: line 10, line 5 of a function inlined at line 11, and line 12.
std::string with_lines() {
  std::string lines;
  std::string header;
  put<std::uint8_t>(header, 1);   // bytes of an instruction
  put<std::uint8_t>(header, 1);   // is a statement
  put<std::int8_t>(header, -5);   // line base
  put<std::uint8_t>(header, 14);  // line range
  put<std::uint8_t>(header, 10);  // opcode base
  header += std::string("\0\1\1\1\1\0\0\0\1", 9);
  header += std::string("/src\0\0", 6);
  header += std::string("k.cu\0\1\0\0", 8) + std::string("f.h\0\0\0\0", 7) + std::string(1, '\0');
  put<std::uint32_t>(header, 4);  // names of functions begin there in .debug_str
  const std::size_t set_address = 4 + 2 + 4 + header.size() + 3;
  std::string code;
  code += std::string("\0\x09\x02", 3) + std::string(8, '\0');  // set address
  code += std::string("\x03\x09\x01", 3);                       // line 10, row 1
  code += std::string("\x02\x10\x03\x01\x01", 5);               // +16, line 11, row 2: the call
  code += std::string("\x00\x03\x90\x02\x00", 5);               // inlined from row 2: "callee"
  code += std::string("\x04\x02\x03\x7a\x01", 5);               // file 2, line 5, row 3
  code += std::string("\x02\x20\x04\x01", 4);                   // +32, file 1
  code += std::string("\x00\x03\x90\x00\x07", 5);               // back in the kernel
  code += std::string("\x03\x07\x01", 3);                       // line 12, row 4
  code += std::string("\x02\x10\x00\x01\x01", 5);               // +16, end
  put<std::uint32_t>(lines, static_cast<std::uint32_t>(2 + 4 + header.size() + code.size()));
  put<std::uint16_t>(lines, 2);
  put(lines, static_cast<std::uint32_t>(header.size()));
  lines += header + code;
  std::string relocation;
  put<std::uint64_t>(relocation, set_address);
  put<std::uint64_t>(relocation, std::uint64_t{1} << 32 | 2);
  const std::string strings("\0kernel\0helper\0", 15);
  return elf(
      {{".text.kernel", 1, std::string(96, '\1'), 0, 0},
       {".symtab", 2, symbol(0, 0, 0, 0, 0, 0) + symbol(1, 0x12, 0x10, 1, 0, 64) + symbol(8, 0x02, 0, 1, 64, 32), 3, 0},
       {".strtab", 3, strings, 0, 0},
       {".debug_line", 1, lines, 0, 0},
       {".rel.debug_line", 9, relocation, 2, 4},
       {".debug_str", 1, std::string("xxx\0callee\0kernel\0", 18), 0, 0}});
}

std::string chain(const Cubin& cubin, std::string_view function, std::uint64_t offset) {
  std::string made;
  for (const CodePlace& place : cubin.at(function, offset)) {
    made += std::string(made.empty() ? "" : " < ") + std::string(place.function) + " " + place.file + ":" +
            std::to_string(place.line);
  }
  return made;
}

}  // namespace

TEST_CASE("an instruction has its line, and the calls that it was inlined through") {
  std::string error;
  const auto cubin = Cubin::read(with_lines(), &error);
  REQUIRE(cubin);
  CHECK(cubin->has_lines());
  CHECK(chain(*cubin, "kernel", 0) == "kernel /src/k.cu:10");
  CHECK(chain(*cubin, "kernel", 16) == "callee f.h:5 < kernel /src/k.cu:11");
  CHECK(chain(*cubin, "kernel", 32) == "callee f.h:5 < kernel /src/k.cu:11");
  CHECK(chain(*cubin, "kernel", 48) == "kernel /src/k.cu:12");
  CHECK(chain(*cubin, "kernel", 64).empty());  // behind it
  CHECK(chain(*cubin, "helper", 0).empty());   // of the same section, without lines
  CHECK(chain(*cubin, "absent", 0).empty());
  CHECK(cubin->kernel_of("helper") == "kernel");
  CHECK(cubin->kernel_of("absent").empty());
  CHECK(cubin->code("helper").size() == 32);
}

TEST_CASE("other files are refused in a sentence, and damage gives less, never a crash") {
  std::string error;
  CHECK_FALSE(Cubin::read("", &error));
  CHECK_FALSE(Cubin::read(std::string(200, 'x'), &error));
  CHECK(error == "This is no cubin: it does not begin as a 64-bit ELF file.");
  std::string other = with_lines();
  other[18] = 62;
  CHECK_FALSE(Cubin::read(other, &error));
  CHECK(error == "This is no cubin: it is an ELF file of another machine.");
  const std::string whole = with_lines();
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    std::string torn = whole;
    for (int i = 0; i < 1 + round % 4; ++i) torn[random() % torn.size()] = static_cast<char>(random());
    if (round % 3 == 0) torn.resize(random() % torn.size());
    if (const auto cubin = Cubin::read(torn, &error)) {
      for (const Cubin::Function& function : cubin->functions()) {
        for (std::uint64_t at = 0; at < 128; at += 16) chain(*cubin, function.name, at);
        cubin->kernel_of(function.name);
      }
    }
  }
}
