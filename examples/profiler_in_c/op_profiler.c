/* A profiler of its own on Leadline's C API: calls, total and longest time of every operator, and the Python line that
 * called the slowest one. It runs beside Leadline's own collector, and may come and go while the program runs.
 *
 *   cc -O2 -shared -fPIC -I ../../native/include op_profiler.c -o op_profiler.so -ldl
 *
 * Start and stop it from Python with ctypes (README.md). Nothing is linked: the functions are found in the extension
 * module that the program has loaded. A callback may not block or allocate, so the table is fixed and lock-free. */
#include <dlfcn.h>
#include <leadline/monitor.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRows = 1024, kName = 96, kLine = 256 };

typedef struct {
  atomic_int state; /* 0 free, 1 being named, 2 in use */
  char name[kName];
  atomic_llong calls, total_ns, longest_ns;
  char line[kLine]; /* of the longest call, written by whoever made it the longest */
} row;

typedef struct {
  row rows[kRows];
  atomic_llong lost; /* calls for which there was no row */
  leadline_status (*callpath)(uint32_t, leadline_frame*, size_t*);
  leadline_status (*unregister)(leadline_subscription);
  leadline_subscription subscription;
} profiler;

static row* row_of(profiler* to, const char* name) {
  unsigned hash = 5381;
  for (const char* c = name; *c; ++c) hash = hash * 33 + (unsigned char)*c;
  for (int probe = 0; probe < 32; ++probe) {
    row* at = &to->rows[(hash + probe) % kRows];
    int free_row = 0;
    if (atomic_compare_exchange_strong(&at->state, &free_row, 1)) {
      strncpy(at->name, name, kName - 1);
      atomic_store(&at->state, 2);
    }
    while (atomic_load(&at->state) == 1) {
    } /* a few instructions of another thread */
    if (strncmp(at->name, name, kName - 1) == 0) return at;
  }
  return NULL;
}

static void note_line(profiler* to, row* at) {
  leadline_frame frames[64];
  size_t count = 64;
  if (to->callpath(LEADLINE_SOURCE_PYTHON, frames, &count) != LEADLINE_OK || count == 0) return;
  const leadline_frame* leaf = &frames[count - 1];
  snprintf(at->line, kLine, "%s:%d", leaf->file, leaf->line);
}

/* Runs on the thread of the event, inside the program. `scope_data` is ours from a begin to its end. */
static void on_event(const leadline_event* event, void* user) {
  profiler* to = user;
  if (event->scope_data == NULL) return;
  if (event->phase == LEADLINE_BEGIN) {
    *event->scope_data = (uint64_t)event->time_ns;
  } else if (event->phase == LEADLINE_END && *event->scope_data != 0) {
    const long long took = event->time_ns - (long long)*event->scope_data;
    row* at = row_of(to, event->of.op.name);
    if (at == NULL) {
      atomic_fetch_add(&to->lost, 1);
      return;
    }
    atomic_fetch_add(&at->calls, 1);
    atomic_fetch_add(&at->total_ns, took);
    long long longest = atomic_load(&at->longest_ns);
    while (took > longest && !atomic_compare_exchange_weak(&at->longest_ns, &longest, took)) {
    }
    if (took > longest) note_line(to, at);
  }
}

/* `native`: path of leadline._native. NULL where it has no such API, or no room for one more listener. */
profiler* op_profiler_start(const char* native) {
  void* library = dlopen(native, RTLD_NOW | RTLD_NOLOAD);
  leadline_status (*subscribe)(uint32_t, leadline_callback, void*, leadline_subscription*) = NULL;
  profiler* made = calloc(1, sizeof(profiler));
  if (library == NULL || made == NULL) return NULL;
  *(void**)&subscribe = dlsym(library, "leadline_monitor_register");
  *(void**)&made->callpath = dlsym(library, "leadline_callpath_get");
  *(void**)&made->unregister = dlsym(library, "leadline_monitor_unregister");
  if (subscribe && made->callpath && made->unregister &&
      subscribe(LEADLINE_DOMAIN_OPERATOR, on_event, made, &made->subscription) == LEADLINE_OK)
    return made;
  free(made);
  return NULL;
}

static int by_total(const void* left, const void* right) {
  const long long a = atomic_load(&((row*)left)->total_ns), b = atomic_load(&((row*)right)->total_ns);
  return (a < b) - (a > b);
}

/* Prints the table. After the subscription has ended no callback runs, so nobody else looks at it. */
void op_profiler_stop(profiler* mine) {
  mine->unregister(mine->subscription);
  qsort(mine->rows, kRows, sizeof(row), by_total);
  for (int i = 0; i < kRows && atomic_load(&mine->rows[i].calls) != 0; ++i)
    printf("%s\t%lld\t%lld\t%lld\t%s\n", mine->rows[i].name, mine->rows[i].calls, mine->rows[i].total_ns,
           mine->rows[i].longest_ns, mine->rows[i].line);
  if (mine->lost != 0) printf("(no room)\t%lld\n", mine->lost);
  fflush(stdout);
  free(mine);
}
