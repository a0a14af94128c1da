/* The toy accelerator's public header: what its users see. */
#ifndef TOY_NPU_H
#define TOY_NPU_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct toy_stream toy_stream;
typedef struct toy_kernel toy_kernel;

toy_stream* toy_stream_create(void);
int toy_stream_synchronize(toy_stream* stream);
int toy_load(const char* name, toy_kernel** out);
/* Runs for so many microseconds of the device's time; *ticket names the work. */
int toy_launch(toy_kernel* kernel, toy_stream* stream, uint32_t microseconds, uint64_t* ticket);
/* As above by name; `done` is called on the device's thread. */
int toy_submit(const char* name, toy_stream* stream, uint32_t microseconds, void (*done)(void*), void* user);
/* kind: 1 to the device, 2 from it. */
int toy_copy(void* to, const void* from, size_t bytes, int kind, toy_stream* stream, uint64_t ticket);
/* Has ended when it returns. */
int toy_run(const char* name, uint32_t microseconds);
int toy_wait(uint64_t ticket);
void* toy_malloc(size_t bytes);
void toy_free(void* address);
/* More arguments than there are registers for. */
double toy_sum(int8_t a, int16_t b, int32_t c, int64_t d, uint8_t e, uint16_t f, uint32_t g, uint64_t h, double r,
               float s, double t, double u, double v, double w, double x, double y, double z, float last);
/* Calls back on the calling thread. */
int toy_each(int count, int (*visit)(int, void*), void* user);
/* Called by the library itself when work has ended; times of the device's clock. */
void toy_work_done(uint64_t ticket, int64_t begin, int64_t end);

#ifdef __cplusplus
}
#endif
#endif
