// Between a caller and the function it calls. An ordinary frame with unwind information: exceptions, debuggers and
// profilers find their way through it.
#include "providers/accelerator/frame.h"

#if defined(__x86_64__)

asm(R"(
  .pushsection .text
  # What arguments are passed in, laid out as in frame.h.
  .macro leadline_save
  movq %rdi, 0(%rsp)
  movq %rsi, 8(%rsp)
  movq %rdx, 16(%rsp)
  movq %rcx, 24(%rsp)
  movq %r8, 32(%rsp)
  movq %r9, 40(%rsp)
  movq %rax, 48(%rsp)
  movups %xmm0, 64(%rsp)
  movups %xmm1, 80(%rsp)
  movups %xmm2, 96(%rsp)
  movups %xmm3, 112(%rsp)
  movups %xmm4, 128(%rsp)
  movups %xmm5, 144(%rsp)
  movups %xmm6, 160(%rsp)
  movups %xmm7, 176(%rsp)
  .endm
  .macro leadline_restore at, base
  movq 0+\at(\base), %rdi
  movq 8+\at(\base), %rsi
  movq 16+\at(\base), %rdx
  movq 24+\at(\base), %rcx
  movq 32+\at(\base), %r8
  movq 40+\at(\base), %r9
  movq 48+\at(\base), %rax
  movups 64+\at(\base), %xmm0
  movups 80+\at(\base), %xmm1
  movups 96+\at(\base), %xmm2
  movups 112+\at(\base), %xmm3
  movups 128+\at(\base), %xmm4
  movups 144+\at(\base), %xmm5
  movups 160+\at(\base), %xmm6
  movups 176+\at(\base), %xmm7
  .endm

  .globl leadline_accelerator_entry
  .hidden leadline_accelerator_entry
  .hidden leadline_accelerator_begin
  .hidden leadline_accelerator_end
  .hidden leadline_accelerator_called_back
  .type leadline_accelerator_entry, @function
leadline_accelerator_entry:
  .cfi_startproc
  endbr64
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  subq $528, %rsp
  leadline_save
  movl %r10d, %r10d
  movq %r10, 56(%rsp)
  leaq 16(%rbp), %rax
  movq %rax, 192(%rsp)
  movq %rsp, %rdi
  call leadline_accelerator_begin
  movq -320(%rbp), %rcx
  testq %rcx, %rcx
  jz 1f
  leaq 1(%rcx), %rax
  andq $-2, %rax
  shlq $3, %rax
  subq %rax, %rsp
  movq -336(%rbp), %rsi
  movq %rsp, %rdi
  cld
  rep movsq
1:
  leadline_restore -528, %rbp
  call *-328(%rbp)
  movq %rax, -304(%rbp)
  movq %rdx, -296(%rbp)
  movups %xmm0, -288(%rbp)
  movups %xmm1, -272(%rbp)
  leaq -528(%rbp), %rdi
  call leadline_accelerator_end
  movq -304(%rbp), %rax
  movq -296(%rbp), %rdx
  movups -288(%rbp), %xmm0
  movups -272(%rbp), %xmm1
  leave
  .cfi_def_cfa %rsp, 8
  ret
  .cfi_endproc
  .size leadline_accelerator_entry, .-leadline_accelerator_entry

  .balign 16
  .globl leadline_callback_code
  .hidden leadline_callback_code
  .type leadline_callback_code, @function
leadline_callback_code:
  .cfi_startproc
  .set leadline_callback, 0
  .rept 1024
  .balign 16
  endbr64
  movl $leadline_callback, %r10d
  jmp leadline_callback_entry
  .set leadline_callback, leadline_callback+1
  .endr
  .cfi_endproc
  .size leadline_callback_code, .-leadline_callback_code

  .type leadline_callback_entry, @function
leadline_callback_entry:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  subq $192, %rsp
  leadline_save
  movl %r10d, %edi
  call leadline_accelerator_called_back
  movq %rax, %r11
  leadline_restore 0, %rsp
  leave
  .cfi_def_cfa %rsp, 8
  jmp *%r11
  .cfi_endproc
  .size leadline_callback_entry, .-leadline_callback_entry
  .purgem leadline_save
  .purgem leadline_restore
  .popsection
)");

#else
// Calls of other processors' conventions are not known: the provider says so and catches none.
extern "C" {
void leadline_accelerator_entry() {}
const char leadline_callback_code[] = "";
}
#endif
