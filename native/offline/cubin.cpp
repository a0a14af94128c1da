#include "offline/cubin.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "offline/line_program.h"

namespace leadline::offline {
namespace {

constexpr std::uint16_t kMachineCuda = 190;
constexpr std::uint32_t kSymbolTable = 2;
constexpr std::uint32_t kRelocationsWithAddend = 4;
constexpr std::uint32_t kNoBits = 8;
constexpr std::uint32_t kRelocations = 9;
constexpr std::uint8_t kFunction = 2;        // type of a symbol
constexpr std::uint8_t kKernelEntry = 0x10;  // in st_other
constexpr std::size_t kHeaderBytes = 64;
constexpr std::size_t kSectionBytes = 64;
constexpr std::size_t kSymbolBytes = 24;
constexpr int kDeepest = 64;  // inlined calls; a file may make a circle of them
constexpr std::string_view kCodePrefix = ".text.";

template <class T>
T at_offset(std::string_view bytes, std::size_t offset) {
  T value{};
  if (offset <= bytes.size() && bytes.size() - offset >= sizeof value) {
    std::memcpy(&value, bytes.data() + offset, sizeof value);
  }
  return value;
}

}  // namespace

std::optional<Cubin> Cubin::read(std::string bytes, std::string* error) {
  Cubin cubin;
  cubin.bytes_ = std::move(bytes);
  const std::string_view all = cubin.bytes_;
  const bool elf64 = all.size() >= kHeaderBytes && all.starts_with(
                                                       "\x7f"
                                                       "ELF\x02\x01");
  if (!elf64) {
    *error = "This is no cubin: it does not begin as a 64-bit ELF file.";
    return std::nullopt;
  }
  if (at_offset<std::uint16_t>(all, 18) != kMachineCuda) {
    *error = "This is no cubin: it is an ELF file of another machine.";
    return std::nullopt;
  }
  if (!cubin.read_sections()) {
    *error = "This cubin is torn: its table of sections is not in the file.";
    return std::nullopt;
  }
  cubin.read_symbols();
  cubin.read_lines();
  return cubin;
}

bool Cubin::read_sections() {
  const std::string_view all = bytes_;
  const auto table = at_offset<std::uint64_t>(all, 40);
  std::uint64_t count = at_offset<std::uint16_t>(all, 60);
  std::uint64_t names = at_offset<std::uint16_t>(all, 62);
  if (at_offset<std::uint16_t>(all, 58) != kSectionBytes || table > all.size()) return false;
  // More sections than the header has room for: the first one says how many.
  if (count == 0) count = at_offset<std::uint64_t>(all, table + 32);
  if (names == 0xffff) names = at_offset<std::uint32_t>(all, table + 40);
  if (count == 0 || count > (all.size() - table) / kSectionBytes || names >= count) return false;
  sections_.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t at = table + i * kSectionBytes;
    sections_.push_back({at_offset<std::uint32_t>(all, at), at_offset<std::uint32_t>(all, at + 4),
                         at_offset<std::uint64_t>(all, at + 24), at_offset<std::uint64_t>(all, at + 32),
                         at_offset<std::uint32_t>(all, at + 40), at_offset<std::uint32_t>(all, at + 44)});
  }
  section_names_ = contents(sections_[names]);
  return true;
}

std::string_view Cubin::contents(const Section& section) const {
  const std::string_view all = bytes_;
  if (section.type == kNoBits || section.offset > all.size() || section.size > all.size() - section.offset) return {};
  return all.substr(section.offset, section.size);
}

std::string_view Cubin::text(std::string_view strings, std::uint64_t offset) const {
  if (offset >= strings.size()) return {};
  const std::string_view rest = strings.substr(offset);
  const auto end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

void Cubin::read_symbols() {
  for (const Section& section : sections_) {
    if (section.type != kSymbolTable || section.link >= sections_.size()) continue;
    const std::string_view table = contents(section);
    symbol_names_ = contents(sections_[section.link]);
    symbols_.reserve(table.size() / kSymbolBytes);
    for (std::size_t at = 0; at + kSymbolBytes <= table.size(); at += kSymbolBytes) {
      symbols_.push_back({at_offset<std::uint32_t>(table, at), at_offset<std::uint8_t>(table, at + 4),
                          at_offset<std::uint8_t>(table, at + 5), at_offset<std::uint16_t>(table, at + 6),
                          at_offset<std::uint64_t>(table, at + 8), at_offset<std::uint64_t>(table, at + 16)});
    }
    break;  // there is one
  }
  for (const Symbol& symbol : symbols_) {
    const std::string_view name = text(symbol_names_, symbol.name);
    if ((symbol.info & 0xf) != kFunction || name.empty() || symbol.section >= sections_.size()) continue;
    functions_.push_back({name, symbol.section, symbol.value, symbol.size, (symbol.other & kKernelEntry) != 0});
  }
  std::stable_sort(functions_.begin(), functions_.end(),
                   [](const Function& a, const Function& b) { return a.name < b.name; });
}

std::vector<Cubin::Relocation> Cubin::relocations_of(std::uint32_t target) const {
  std::vector<Relocation> found;
  for (const Section& section : sections_) {
    const bool with_addend = section.type == kRelocationsWithAddend;
    if ((!with_addend && section.type != kRelocations) || section.info != target) continue;
    const std::string_view table = contents(section);
    const std::size_t each = with_addend ? 24 : 16;
    for (std::size_t at = 0; at + each <= table.size(); at += each) {
      found.push_back({at_offset<std::uint64_t>(table, at), at_offset<std::uint32_t>(table, at + 12),
                       with_addend ? at_offset<std::uint64_t>(table, at + 16) : 0});
    }
  }
  std::sort(found.begin(), found.end(), [](const Relocation& a, const Relocation& b) { return a.offset < b.offset; });
  return found;
}

void Cubin::read_lines() {
  std::uint32_t lines = 0;
  for (std::uint32_t i = 0; i < sections_.size(); ++i) {
    const std::string_view name = text(section_names_, sections_[i].name);
    if (name == ".debug_line") lines = i;
    if (name == ".debug_str") debug_strings_ = contents(sections_[i]);
    if (name == ".debug_line_str") line_strings_ = contents(sections_[i]);
  }
  if (lines == 0) return;
  const std::vector<Relocation> relocations = relocations_of(lines);
  // Code is not laid out yet, so every address is one in the section that the relocation there names.
  const auto relocated = [&](std::uint64_t offset, std::uint32_t* section, std::uint64_t* address) {
    const auto found = std::lower_bound(relocations.begin(), relocations.end(), offset,
                                        [](const Relocation& r, std::uint64_t wanted) { return r.offset < wanted; });
    if (found == relocations.end() || found->offset != offset || found->symbol >= symbols_.size()) return false;
    const Symbol& symbol = symbols_[found->symbol];
    *section = symbol.section;
    *address += found->addend + symbol.value;
    return true;
  };
  const LineSections from{contents(sections_[lines]), debug_strings_, line_strings_};
  read_line_programs(from, relocated, [&](LineUnit&& unit) {
    if (rows_.size() + unit.rows.size() > UINT32_MAX) return;
    const auto number = static_cast<std::uint32_t>(units_.size());
    units_.push_back({rows_.size(), files_.size(), unit.files.size(), unit.first_file});
    files_.insert(files_.end(), std::make_move_iterator(unit.files.begin()), std::make_move_iterator(unit.files.end()));
    std::uint32_t begin = 0;
    for (std::uint32_t i = 0; i < unit.rows.size(); ++i) {
      const LineRow& row = unit.rows[i];
      rows_.push_back({row.address, row.file, row.line, row.context, row.function});
      if (!row.ends) continue;
      Sequence sequence{row.section, number, {}, row.address};
      for (; begin < i; ++begin) {
        if (unit.rows[begin].section == row.section) {
          sequence.rows.push_back(static_cast<std::uint32_t>(units_.back().first_row + begin));
        }
      }
      ++begin;
      std::stable_sort(sequence.rows.begin(), sequence.rows.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return rows_[a].address < rows_[b].address; });
      if (!sequence.rows.empty()) sequences_.push_back(std::move(sequence));
    }
  });
  std::stable_sort(sequences_.begin(), sequences_.end(),
                   [](const Sequence& a, const Sequence& b) { return a.section < b.section; });
}

const Cubin::Function* Cubin::find(std::string_view name) const {
  const auto found = std::lower_bound(functions_.begin(), functions_.end(), name,
                                      [](const Function& f, std::string_view wanted) { return f.name < wanted; });
  return found != functions_.end() && found->name == name ? &*found : nullptr;
}

std::string_view Cubin::kernel_of(std::string_view function) const {
  const Function* found = find(function);
  if (found == nullptr) return {};
  if (found->kernel) return found->name;
  std::string_view name = text(section_names_, sections_[found->section].name);
  if (!name.starts_with(kCodePrefix)) return {};
  const Function* owner = find(name.substr(kCodePrefix.size()));
  return owner != nullptr && owner->kernel ? owner->name : std::string_view();
}

std::string_view Cubin::code(std::string_view function) const {
  const Function* found = find(function);
  if (found == nullptr) return {};
  const std::string_view all = contents(sections_[found->section]);
  return found->begin <= all.size() ? all.substr(found->begin, found->size) : std::string_view();
}

std::vector<CodePlace> Cubin::at(std::string_view function, std::uint64_t offset) const {
  std::vector<CodePlace> chain;
  const Function* in = find(function);
  if (in == nullptr || (in->size != 0 && offset >= in->size) || offset > UINT64_MAX - in->begin) return chain;
  const std::uint64_t address = in->begin + offset;
  const Row* row = nullptr;
  const Unit* unit = nullptr;
  auto sequence = std::lower_bound(sequences_.begin(), sequences_.end(), in->section,
                                   [](const Sequence& s, std::uint32_t wanted) { return s.section < wanted; });
  for (; sequence != sequences_.end() && sequence->section == in->section && row == nullptr; ++sequence) {
    if (address >= sequence->end || address < rows_[sequence->rows.front()].address) continue;
    const auto above =
        std::upper_bound(sequence->rows.begin(), sequence->rows.end(), address,
                         [&](std::uint64_t wanted, std::uint32_t r) { return wanted < rows_[r].address; });
    row = &rows_[*std::prev(above)];
    unit = &units_[sequence->unit];
  }
  for (int depth = 0; row != nullptr && depth < kDeepest; ++depth) {
    CodePlace place;
    place.function =
        row->context == 0 ? in->name : text(debug_strings_, row->function == 0 ? UINT64_MAX : row->function - 1);
    place.line = row->line;
    if (row->file >= unit->first_number && row->file - unit->first_number < unit->file_count) {
      place.file = files_[unit->first_file + (row->file - unit->first_number)];
    }
    chain.push_back(std::move(place));
    const std::size_t caller = unit->first_row + row->context - 1;
    const bool known = row->context != 0 && caller < rows_.size() && &rows_[caller] != row;
    row = known ? &rows_[caller] : nullptr;
  }
  return chain;
}

}  // namespace leadline::offline
