/* See toy_npu.h. Work of all streams runs on one device thread, one piece after the other, for as long as it was asked
 * to. */
#define _GNU_SOURCE
#include "testing/accelerator/toy_npu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct toy_kernel {
  char name[64];
};

typedef struct work {
  struct work* next;
  toy_stream* stream;
  uint64_t ticket;
  uint32_t microseconds;
  void (*done)(void*);
  void* user;
} work;

struct toy_stream {
  int queued;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static work* first;
static work** last = &first;
static toy_stream default_stream;
static uint64_t tickets;
static uint64_t finished[4096]; /* the latest ticket that fell on each place */
static int started;

static int64_t clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void toy_work_done(uint64_t ticket, int64_t begin, int64_t end) {
  (void)begin;
  (void)end;
  pthread_mutex_lock(&lock);
  finished[ticket % 4096] = ticket;
  pthread_mutex_unlock(&lock);
}

static void* device(void* unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  for (;;) {
    while (first == NULL) pthread_cond_wait(&changed, &lock);
    work* now = first;
    first = now->next;
    if (first == NULL) last = &first;
    pthread_mutex_unlock(&lock);
    const int64_t begin = clock_ns();
    while (clock_ns() - begin < (int64_t)now->microseconds * 1000) {
    }
    const int64_t end = clock_ns();
    if (now->ticket != 0) toy_work_done(now->ticket, begin / 100, end / 100);
    if (now->done != NULL) now->done(now->user);
    pthread_mutex_lock(&lock);
    --now->stream->queued;
    free(now);
    pthread_cond_broadcast(&changed);
  }
  return NULL;
}

static int submit(toy_stream* stream, uint32_t microseconds, uint64_t ticket, void (*done)(void*), void* user) {
  work* made = calloc(1, sizeof *made);
  if (made == NULL) return -1;
  made->stream = stream != NULL ? stream : &default_stream;
  made->microseconds = microseconds;
  made->ticket = ticket;
  made->done = done;
  made->user = user;
  pthread_mutex_lock(&lock);
  if (!started) {
    pthread_t thread;
    started = pthread_create(&thread, NULL, device, NULL) == 0;
    if (started) pthread_detach(thread);
  }
  ++made->stream->queued;
  *last = made;
  last = &made->next;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return 0;
}

toy_stream* toy_stream_create(void) { return calloc(1, sizeof(toy_stream)); }

int toy_stream_synchronize(toy_stream* stream) {
  if (stream == NULL) stream = &default_stream;
  pthread_mutex_lock(&lock);
  while (stream->queued > 0) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  return 0;
}

int toy_load(const char* name, toy_kernel** out) {
  if (name == NULL || name[0] == 0) return 7;
  *out = calloc(1, sizeof **out);
  strncpy((*out)->name, name, sizeof(*out)->name - 1);
  return 0;
}

int toy_launch(toy_kernel* kernel, toy_stream* stream, uint32_t microseconds, uint64_t* ticket) {
  if (kernel == NULL) return 3;
  const uint64_t mine = __atomic_add_fetch(&tickets, 1, __ATOMIC_RELAXED) << 32;
  const int status = submit(stream, microseconds, mine, NULL, NULL);
  *ticket = mine; /* the work may have ended by now */
  return status;
}

int toy_submit(const char* name, toy_stream* stream, uint32_t microseconds, void (*done)(void*), void* user) {
  return name == NULL ? 3 : submit(stream, microseconds, 0, done, user);
}

int toy_copy(void* to, const void* from, size_t bytes, int kind, toy_stream* stream, uint64_t ticket) {
  if (kind != 1 && kind != 2) return 5;
  memcpy(to, from, bytes);
  return submit(stream, (uint32_t)(bytes / 1000), ticket, NULL, NULL);
}

int toy_run(const char* name, uint32_t microseconds) {
  if (name == NULL) return 3;
  if (submit(NULL, microseconds, 0, NULL, NULL) != 0) return 1;
  return toy_stream_synchronize(NULL);
}

int toy_wait(uint64_t ticket) {
  pthread_mutex_lock(&lock);
  while (finished[ticket % 4096] != ticket) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  return 0;
}

void* toy_malloc(size_t bytes) { return malloc(bytes); }
void toy_free(void* address) { free(address); }

double toy_sum(int8_t a, int16_t b, int32_t c, int64_t d, uint8_t e, uint16_t f, uint32_t g, uint64_t h, double r,
               float s, double t, double u, double v, double w, double x, double y, double z, float last_one) {
  return a + 2.0 * b + 3.0 * c + 4.0 * (double)d + 5.0 * e + 6.0 * f + 7.0 * g + 8.0 * (double)h + r + 2.0 * s +
         3.0 * t + 4.0 * u + 5.0 * v + 6.0 * w + 7.0 * x + 8.0 * y + 9.0 * z + 10.0 * last_one;
}

int toy_each(int count, int (*visit)(int, void*), void* user) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += visit(i, user);
  return sum;
}
