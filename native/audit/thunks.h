// LEADLINE_THUNKS(FIRST): one array of thunks and of their targets in the library that this is written in.
//
// A thunk passes its number on in r10, which no caller and no function of C uses between a call and its begin, and
// jumps to its target; all else is as the caller left it. They are made by the assembler, so no memory has to be
// writable and executable.
#pragma once

#include "audit/mailbox.h"

#if defined(__x86_64__)
#define LEADLINE_HAS_THUNKS 1

// clang-format off
#define LEADLINE_THUNKS(FIRST)                                    \
  extern "C" {                                                    \
  __attribute__((visibility("hidden"), used))                     \
  std::atomic<void*> leadline_thunk_targets[leadline::audit::kThunks]; \
  extern const char leadline_thunk_code[]                         \
      __attribute__((visibility("hidden")));                      \
  }                                                               \
  asm(".pushsection .text\n"                                      \
      ".balign 16\n"                                              \
      ".globl leadline_thunk_code\n"                              \
      ".hidden leadline_thunk_code\n"                             \
      ".type leadline_thunk_code, @function\n"                    \
      "leadline_thunk_code:\n"                                    \
      ".cfi_startproc\n"                                          \
      ".set leadline_thunk, 0\n"                                  \
      ".rept 256\n"                                               \
      "endbr64\n"                                                 \
      "movl $leadline_thunk+" #FIRST ", %r10d\n"                  \
      "jmp *leadline_thunk_targets+8*leadline_thunk(%rip)\n"      \
      ".set leadline_thunk, leadline_thunk+1\n"                   \
      ".endr\n"                                                   \
      ".cfi_endproc\n"                                            \
      ".size leadline_thunk_code, .-leadline_thunk_code\n"        \
      ".popsection\n")
// clang-format on
static_assert(leadline::audit::kThunks == 256 && leadline::audit::Thunks::kThunkBytes == 16);
static_assert(sizeof(std::atomic<void*>) == 8);
#endif
