// Unwind information as compilers write it, spoilt in every way: no crash, no read outside, no rule that makes no
// sense.
#include "unwind/eh_frame.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

using namespace leadline::unwind;

namespace {

// A section of one common entry and one function of 64 bytes at `code`, written by hand.
class Section {
 public:
  static constexpr uintptr_t kCode = 0x400000;

  explicit Section(std::vector<uint8_t> program, const char* augmentation = "zR",
                   std::vector<uint8_t> initial = {0x0c, 7, 8, 0x90, 1}) {
    std::vector<uint8_t> common = {0, 0, 0, 0, 1};
    for (const char* letter = augmentation; *letter != 0; ++letter) common.push_back(static_cast<uint8_t>(*letter));
    common.insert(common.end(), {0, 1, 0x78, 16, 1, 0x00});  // pointers are absolute
    common.insert(common.end(), initial.begin(), initial.end());
    add(common);
    fde_ = bytes_.size();
    std::vector<uint8_t> function(4 + 16 + 1);
    const auto back = static_cast<uint32_t>(fde_ + 4);
    std::memcpy(function.data(), &back, 4);
    const uint64_t range[2] = {kCode, 64};
    std::memcpy(function.data() + 4, range, 16);
    function.insert(function.end(), program.begin(), program.end());
    add(function);
  }
  Rule at(uintptr_t offset) const { return at(offset, bytes_); }
  Rule at(uintptr_t offset, const std::vector<uint8_t>& bytes) const {
    // Exactly as large as it is, so that a sanitizer sees what reads beyond.
    std::vector<uint8_t> copy(bytes);
    const auto begin = reinterpret_cast<uintptr_t>(copy.data());
    return run_program(kCode + offset, begin + fde_, begin, begin + copy.size());
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  void add(std::vector<uint8_t> entry) {
    while ((entry.size() + 4) % 8 != 0) entry.push_back(0);
    const auto length = static_cast<uint32_t>(entry.size());
    const auto* const begin = reinterpret_cast<const uint8_t*>(&length);
    bytes_.insert(bytes_.end(), begin, begin + 4);
    bytes_.insert(bytes_.end(), entry.begin(), entry.end());
  }
  std::vector<uint8_t> bytes_;
  size_t fde_ = 0;
};

// push rbp; mov rbp, rsp; ...; pop rbp
const std::vector<uint8_t> kUsual = {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x70, 0x0a, 0x0c, 7, 8, 0xc6, 0x41, 0x0b};

}  // namespace

TEST_CASE("a function with a frame pointer") {
  const Section section(kUsual);
  CHECK(section.at(0) == Rule{RuleKind::kFromSp, BpMode::kSame, 0, 8});
  CHECK(section.at(1) == Rule{RuleKind::kFromSp, BpMode::kAtCfa, -16, 16});
  CHECK(section.at(4) == Rule{RuleKind::kFromBp, BpMode::kAtCfa, -16, 16});
  CHECK(section.at(52) == Rule{RuleKind::kFromSp, BpMode::kSame, 0, 8});
  CHECK(section.at(53) == Rule{RuleKind::kFromBp, BpMode::kAtCfa, -16, 16});
  CHECK(section.at(64).kind == RuleKind::kNone);
}

TEST_CASE("what compilers do for aligned stacks, linkage tables, signals and the first function") {
  // The frame ends where a word at rbp-8 says, and rbp itself is saved at rbp+0.
  const Section aligned({0x10, 6, 2, 0x76, 0, 0x0f, 3, 0x76, 0x78, 0x06});
  CHECK(aligned.at(1) == Rule{RuleKind::kAtBp, BpMode::kAtBp, 0, -8});
  const Section table({0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22});
  CHECK(table.at(3) == Rule{RuleKind::kFromSp, BpMode::kSame, 0, 8});
  CHECK(table.at(11) == Rule{RuleKind::kFromSp, BpMode::kSame, 0, 16});
  CHECK(Section(kUsual, "zRS").at(1).kind == RuleKind::kSignal);
  CHECK(Section({0x07, 16}).at(1).kind == RuleKind::kOutermost);
}

TEST_CASE("what is not understood is no rule") {
  CHECK(Section({0x0c, 10, 0}).at(1).kind == RuleKind::kNone);  // from r10
  CHECK(Section({0x90, 2}).at(1).kind == RuleKind::kNone);      // the return address elsewhere
  CHECK(Section({0x0b}).at(1).kind == RuleKind::kNone);         // restored without remembering
  CHECK(Section({0x3f}).at(1).kind == RuleKind::kNone);         // no such instruction
  CHECK(Section(kUsual, "eh").at(1).kind == RuleKind::kNone);   // old GCC's
  CHECK(Section({0x09, 6, 3}).at(1).kind == RuleKind::kNone);   // rbp in another register
  CHECK(Section(kUsual, "zR", {0x0a, 0x0c, 7, 8}).at(1).kind == RuleKind::kNone);
}

TEST_CASE("spoilt information") {
  std::mt19937 random(11);
  const Section sections[] = {Section(kUsual), Section({0x10, 6, 2, 0x76, 0, 0x0f, 3, 0x76, 0x78, 0x06})};
  for (int round = 0; round < 60000; ++round) {
    const Section& section = sections[round % 2];
    std::vector<uint8_t> bytes = section.bytes();
    for (size_t change = random() % 4 + 1; change > 0; --change)
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size() + 1);
    const Rule rule = section.at(random() % 64, bytes);
    CHECK(static_cast<int>(rule.kind) <= static_cast<int>(RuleKind::kOutermost));
  }
}
