/* For wheels only (LEADLINE_PORTABLE). The C++ library that is linked in was built where glibc has arc4random (2.36)
 * and refers to it for std::random_device; this one of the same meaning lets the wheel run on older systems. */
#include <stdint.h>
#include <sys/random.h>

uint32_t arc4random(void);

uint32_t arc4random(void) {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}
