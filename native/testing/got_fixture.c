/* A library that calls a function of another library through its global offset table; built once with lazy binding and
 * once with full RELRO, because the two tables look different. */
#include <unistd.h>

__attribute__((visibility("default"))) int FIXTURE_NAME(void) { return (int)getppid(); }
