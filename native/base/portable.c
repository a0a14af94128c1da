/* For wheels only (LEADLINE_PORTABLE). The C++ library that is linked in was built for a newer glibc than the oldest
 * one that the wheel runs on, and refers to what that one has not; these of the same meaning stand in. */
#include <stdint.h>
#include <sys/random.h>

/* Since 2.36; std::random_device asks it. */
uint32_t arc4random(void);

uint32_t arc4random(void) {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}

/* Since 2.32; std::shared_ptr counts without atomic instructions where it is true. False is always right. */
extern char __libc_single_threaded;
char __libc_single_threaded = 0;
