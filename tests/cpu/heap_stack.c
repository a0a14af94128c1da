/* Spends CPU time with the stack pointer in a buffer of the heap, as oneDNN's matrix products do, and says how much of
   what lies before that buffer was written to meanwhile. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { kBefore = 64 * 1024, kOwn = 4096 };

long spend_on_heap(long turns) {
  unsigned char *heap = malloc(kBefore + kOwn);
  memset(heap, 0x5a, kBefore + kOwn);
  unsigned char *top = heap + kBefore;
  __asm__ volatile(
      "mov %%rsp, %%r12\n mov %0, %%rsp\n"
      "1: dec %1\n jnz 1b\n"
      "mov %%r12, %%rsp\n"
      : "+r"(top), "+r"(turns)
      :
      : "r12", "memory", "cc");
  long written = 0;
  for (int i = 0; i < kBefore; ++i) written += heap[i] != 0x5a;
  free(heap);
  return written;
}

static void *begin(void *turns) { return (void *)spend_on_heap((long)turns); }

/* The same on a thread that nothing but this library knows. */
long spend_on_thread(long turns) {
  pthread_t thread;
  void *written = (void *)-1;
  if (pthread_create(&thread, 0, begin, (void *)turns) == 0) pthread_join(thread, &written);
  return (long)written;
}
