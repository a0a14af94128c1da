// A library that comes and goes while it is unwound, by signal handlers and by exceptions.

// NOLINTNEXTLINE(bugprone-exception-escape): that is what it is for
extern "C" __attribute__((visibility("default"))) void storm_through(void (*call)(void*), void* of, int throws) {
  volatile char frame[STORM_FRAME] = {};
  frame[0] = 1;
  asm volatile("" : : "r"(&frame));
  call(of);
  if (throws != 0) throw throws;
  frame[STORM_FRAME - 1] = 2;
}
