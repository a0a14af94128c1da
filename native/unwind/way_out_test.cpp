// Ways out of functions, followed in their code: as their unwind information says where they have it.
#include "unwind/way_out.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "unwind/eh_frame.h"
#include "unwind/instruction.h"

#ifdef __x86_64__
// Instructions of every length and form; the assembler says where they end.
extern "C" {
extern const unsigned char decoder_first[], decoder_end[];
}
asm(R"(
  .pushsection .rodata
decoder_first:
  push %rbp
  push %r12
  mov %rsp, %rbp
  sub $0x1234, %rsp
  and $-64, %rsp
  movabs $0x1122334455667788, %rax
  movw $0x1234, 8(%rsp)
  movl $0x12345678, 0x1000(%rax,%rcx,4)
  test $0x12345678, %eax
  testb $1, (%rdi)
  lock cmpxchg16b (%rsi)
  imul $0x12345678, (%r13), %r9d
  shld $3, %rax, 0x10(%rbx)
  nopw %cs:0x0(%rax,%rax,1)
  pshufd $0x4e, %xmm9, %xmm1
  pmulld 0x100(%r8), %xmm0
  pinsrd $1, %eax, %xmm3
  crc32q %rax, %rbx
  vaddps 0x20(%rdi), %ymm1, %ymm2
  vfmadd231ps (%rax,%r9,8), %ymm11, %ymm12
  vpermilps $0x1b, %ymm3, %ymm4
  vcmpps $1, %ymm1, %ymm2, %ymm3
  andn %rax, %rbx, %r10
  rorx $7, %rax, %rbx
  vaddps 0x40(%rdi), %zmm17, %zmm31{%k1}{z}
  vpternlogd $0x96, %zmm1, %zmm2, %zmm3
  vbroadcastss 0x4(%rax), %zmm4
  kmovw %k1, %eax
  prefetcht0 0x40(%rdi)
  rep stosq
  jne decoder_end
  movabs %al, 0x1122334455667788
  fldcw 0xe(%rsp)
  vzeroupper
  lea -0x28(%rbp), %rsp
  pop %r12
  leave
  ret
decoder_end:
  .fill 16, 1, 0x90
  .popsection
)");

namespace leadline::unwind {
namespace {

uintptr_t address(const void* of) { return reinterpret_cast<uintptr_t>(of); }

bool is_padding(uintptr_t pc) {
  const auto* code = reinterpret_cast<const unsigned char*>(pc);
  while (*code == 0x66 || *code == 0x2e) ++code;
  return *code == 0x90 || *code == 0xcc || (code[0] == 0x0f && code[1] == 0x1f);
}

struct Score {
  size_t asked = 0;
  size_t found = 0;
  size_t compared = 0;  // said by the same register
  size_t wrong = 0;
};

// What the unwind information says of an address, as its code should say it.
void compare(const Rule& rule, const WayOut& way, Score* score) {
  const bool by_sp = rule.kind == RuleKind::kFromSp;
  const Expression return_at{by_sp ? Expression::kSp : Expression::kBp, 0, rule.cfa_offset - 8};
  if (rule.kind == RuleKind::kAtBp || way.return_at.kind != return_at.kind) return;
  const Expression kept{Expression::kBp, 0, 0};
  Expression bp = kept;
  if (rule.bp == BpMode::kAtCfa)
    bp = {by_sp ? Expression::kAtSp : Expression::kAtBp, int64_t{rule.cfa_offset} + rule.bp_offset, 0};
  ++score->compared;
  // Compilers do not say that a register has been taken back already.
  score->wrong += way.return_at != return_at || (way.bp != bp && way.bp != kept) ? 1 : 0;
}

// Functions that have unwind information, from the table that is sorted by their addresses.
std::vector<uintptr_t> functions(const Sections& sections) {
  struct Pair {
    int32_t begin;
    int32_t entry;
  };
  const uintptr_t head = sections.eh_frame_hdr;
  const uint32_t count = *reinterpret_cast<const uint32_t*>(head + 8);
  const auto* const pairs = reinterpret_cast<const Pair*>(head + 12);
  std::vector<uintptr_t> found;
  for (uint32_t i = 0; i < count; ++i) found.push_back(head + static_cast<uintptr_t>(int64_t{pairs[i].begin}));
  return found;
}

// Some instructions of some functions of the library that a function lies in.
Score compare(const void* function) {
  Score score;
  Sections sections;
  REQUIRE(find_sections(address(function), &sections));
  const std::vector<uintptr_t> begins = functions(sections);
  size_t number = 0;
  for (size_t i = 5; i + 1 < begins.size(); i += 5) {
    bool ended = false;  // what follows may fill up space
    for (uintptr_t pc = begins[i]; pc < begins[i + 1];) {
      const Instruction here = read_instruction(reinterpret_cast<const unsigned char*>(pc), pc);
      if (here.length == 0) break;
      const bool fills = ended && is_padding(pc);
      ended = fills || here.does == Does::kReturn || here.does == Does::kJump || here.does == Does::kStop ||
              here.does == Does::kCall;
      const Rule rule = fills ? Rule{} : find_rule(pc, sections);
      pc += here.length;
      if (rule.kind != RuleKind::kFromSp && rule.kind != RuleKind::kFromBp) continue;
      if (++number % 7 != 0) continue;
      ++score.asked;
      const std::vector<WayOut> ways = ways_out(pc - here.length, begins[i + 1]);
      if (ways.size() != 1) continue;
      ++score.found;
      compare(rule, ways[0], &score);
    }
  }
  return score;
}

}  // namespace

TEST_CASE("instructions are as long as the assembler made them") {
  size_t count = 0;
  const unsigned char* at = decoder_first;
  while (at < decoder_end) {
    const Instruction here = read_instruction(at, address(at));
    REQUIRE_MESSAGE(here.length != 0, "instruction ", count);
    at += here.length;
    ++count;
  }
  CHECK(at == decoder_end);
  CHECK(count == 38);
}

TEST_CASE("code leads out of a function as its unwind information says") {
  void* const library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  for (const void* function : {dlsym(library, "_ZSt9terminatev"), dlsym(RTLD_DEFAULT, "qsort")}) {
    const Score score = compare(function);
    CAPTURE(score.asked);
    CAPTURE(score.found);
    CAPTURE(score.compared);
    CAPTURE(score.wrong);
    CHECK(score.asked > 3000);
    CHECK(score.found > score.asked / 4 * 3);
    CHECK(score.compared > score.found / 10 * 9);
    // Calls that do not return, which nothing tells from others, and code that exchanges stacks.
    CHECK(score.wrong <= score.compared / 200);
  }
}

}  // namespace leadline::unwind
#endif
