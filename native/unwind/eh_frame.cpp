#include "unwind/eh_frame.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <limits>

#include "unwind/frame_program.h"
#include "unwind/section_bytes.h"

namespace leadline::unwind {
namespace {

// The length of an entry is read; its bytes without the length. False at the end of the section.
bool entry_at(uintptr_t at, uintptr_t highest, Bytes* out) noexcept {
  Bytes head(at, highest);
  uint64_t length = head.take<uint32_t>();
  if (length == 0xffffffff) length = head.take<uint64_t>();
  if (head.failed() || length == 0 || length > highest - head.at()) return false;
  *out = Bytes(head.at(), head.at() + length);
  return true;
}

Common common_entry(uintptr_t at, uintptr_t highest) noexcept {
  Common common;
  Bytes bytes(0, 0);
  if (!entry_at(at, highest, &bytes)) return common;
  if (bytes.take<uint32_t>() != 0) return common;
  const auto version = bytes.take<uint8_t>();
  if (version != 1 && version != 3) return common;
  std::array<char, 8> augmentation{};
  for (size_t i = 0;; ++i) {
    const auto letter = bytes.take<char>();
    if (bytes.failed() || (i == augmentation.size() && letter != 0)) return common;
    if (letter == 0) break;
    augmentation[i] = letter;
  }
  common.code_factor = bytes.unsigned_leb();
  common.data_factor = bytes.signed_leb();
  const uint64_t returns = version == 1 ? bytes.take<uint8_t>() : bytes.unsigned_leb();
  if (returns != kReturn || (augmentation[0] != 0 && augmentation[0] != 'z')) return common;
  if (augmentation[0] == 'z') {
    common.augmented = true;
    const uint64_t length = bytes.unsigned_leb();
    Bytes program = bytes;
    program.skip(length);
    for (size_t i = 1; i < augmentation.size() && augmentation[i] != 0; ++i) {
      if (augmentation[i] == 'R') {
        common.pointers = bytes.take<uint8_t>();
      } else if (augmentation[i] == 'L') {
        bytes.skip(1);
      } else if (augmentation[i] == 'P') {
        const auto encoding = bytes.take<uint8_t>();
        bytes.pointer(encoding & 0x7f, 0);
      } else if (augmentation[i] == 'S') {
        common.signal = true;
      } else if (augmentation[i] != 'B') {
        return common;
      }
    }
    if (bytes.failed()) return common;
    bytes = program;
  }
  common.program = bytes;
  common.good = !bytes.failed();
  return common;
}

Rule rule_of(const State& state, bool signal) noexcept {
  Rule rule;
  if (signal) {
    rule.kind = RuleKind::kSignal;
    return rule;
  }
  if (state.ret.where == Where::kUndefined) {
    rule.kind = RuleKind::kOutermost;
    return rule;
  }
  if (state.ret.where != Where::kAtCfa || state.ret.offset != -8) return rule;
  const bool bp_fits = state.bp.offset >= std::numeric_limits<int16_t>::min() &&
                       state.bp.offset <= std::numeric_limits<int16_t>::max() && state.bp.offset % 8 == 0;
  if (state.bp.where == Where::kElsewhere || !bp_fits) return rule;
  if (state.offset < std::numeric_limits<int32_t>::min() || state.offset > std::numeric_limits<int32_t>::max())
    return rule;
  switch (state.base) {
    case Base::kSp:
      rule.kind = RuleKind::kFromSp;
      break;
    case Base::kBp:
      rule.kind = RuleKind::kFromBp;
      break;
    case Base::kAtBp:
      rule.kind = RuleKind::kAtBp;
      break;
    case Base::kElsewhere:
      return rule;
  }
  rule.cfa_offset = static_cast<int32_t>(state.offset);
  rule.bp = state.bp.where == Where::kAtCfa  ? BpMode::kAtCfa
            : state.bp.where == Where::kAtBp ? BpMode::kAtBp
                                             : BpMode::kSame;  // undefined: nobody needs it
  rule.bp_offset = static_cast<int16_t>(state.bp.offset);
  return rule;
}

using FindObject = int (*)(void*, struct dl_find_object*);

FindObject find_object() noexcept {
#ifdef DLFO_STRUCT_HAS_EH_DBASE
  // By name: the C library may be older where this runs than where it was built.
  static const auto found = reinterpret_cast<FindObject>(dlsym(RTLD_DEFAULT, "_dl_find_object"));
  return found;
#else
  return nullptr;
#endif
}

}  // namespace

bool find_sections(uintptr_t pc, Sections* out) noexcept {
#ifdef DLFO_STRUCT_HAS_EH_DBASE
  const FindObject find = find_object();
  dl_find_object found{};
  if (find == nullptr || find(reinterpret_cast<void*>(pc), &found) != 0) return false;
  out->begin = reinterpret_cast<uintptr_t>(found.dlfo_map_start);
  out->end = reinterpret_cast<uintptr_t>(found.dlfo_map_end);
  out->eh_frame_hdr = reinterpret_cast<uintptr_t>(found.dlfo_eh_frame);
  return true;
#else
  (void)pc;
  (void)out;
  return false;
#endif
}

Rule run_program(uintptr_t pc, uintptr_t fde, uintptr_t lowest, uintptr_t highest) noexcept {
  Bytes bytes(0, 0);
  if (fde < lowest || !entry_at(fde, highest, &bytes)) return {};
  const uintptr_t id_at = bytes.at();
  const uintptr_t cie = id_at - bytes.take<uint32_t>();
  if (bytes.failed() || cie < lowest || cie >= id_at) return {};
  const Common common = common_entry(cie, highest);
  if (!common.good) return {};
  const uintptr_t begin = bytes.pointer(common.pointers, 0);
  const uintptr_t size = bytes.pointer(common.pointers & 0x0f, 0);
  if (bytes.failed() || pc < begin || pc - begin >= size) return {};
  if (common.augmented) bytes.skip(bytes.unsigned_leb());
  if (bytes.failed()) return {};
  Machine machine(common, pc);
  if (!machine.run(common.program, begin, false)) return {};
  machine.keep_initial();
  if (!machine.run(bytes, begin, true)) return {};
  return rule_of(machine.state(), common.signal);
}

Rule find_rule(uintptr_t pc, const Sections& sections) noexcept {
  if (sections.eh_frame_hdr == 0) return {};
  Bytes head(sections.eh_frame_hdr, sections.end);
  const auto version = head.take<uint8_t>();
  const auto frame_encoding = head.take<uint8_t>();
  const auto count_encoding = head.take<uint8_t>();
  const auto table_encoding = head.take<uint8_t>();
  head.pointer(frame_encoding, sections.eh_frame_hdr);
  const uintptr_t count = head.pointer(count_encoding, sections.eh_frame_hdr);
  constexpr uint8_t kRelativeToHead = 0x3b;  // pairs of 32 bits, which every linker makes
  if (head.failed() || version != 1 || table_encoding != kRelativeToHead || count == 0) return {};
  struct Pair {
    int32_t begin;
    int32_t entry;
  };
  if (count > (sections.end - head.at()) / sizeof(Pair)) return {};
  const auto* const table = reinterpret_cast<const Pair*>(head.at());
  const auto wanted = static_cast<int64_t>(pc - sections.eh_frame_hdr);
  size_t low = 0;
  size_t high = count;
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    (table[middle].begin <= wanted ? low : high) = middle;
  }
  if (table[low].begin > wanted) return {};
  const uintptr_t fde = sections.eh_frame_hdr + static_cast<uintptr_t>(int64_t{table[low].entry});
  return run_program(pc, fde, sections.begin, sections.end);
}

}  // namespace leadline::unwind
