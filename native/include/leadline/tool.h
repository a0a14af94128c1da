/* An event tool in C: one file, built with `cc -shared -fPIC -I$(leadline tools --include) mine.c -o mine.so`, run with
 * `leadline run --tool ./mine.so train.py`. The same batches as tools in Python get, columns by name.
 *
 *   #include <leadline/tool.h>
 *   static void launch(leadline_run* run, const leadline_batch* batch) { ... leadline_column(batch, "kernel") ... }
 *   static void finish(leadline_run* run) { ... leadline_table(run, "kernels", "kernel=name launches"); ... }
 *   LEADLINE_TOOL(kernels, .doc = "Counts kernels.", .launch = launch, .finish = finish)
 *
 * Every function runs on a thread of the tool's own, never two at once, without Python's lock. A function that takes
 * longer than 5 s ends the tool. A crash is the program's: it shares its memory.
 */
#ifndef LEADLINE_TOOL_H
#define LEADLINE_TOOL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LEADLINE_TOOL_VERSION 1

typedef struct leadline_batch {
  const char* event;
  size_t rows;
  size_t columns;
  const char* const* names;
  const int64_t* const* values; /* rows numbers each; not to be written to */
} leadline_batch;

/* What numbers in columns are numbers of. */
typedef enum leadline_ref {
  LEADLINE_NAME = 0,   /* of a kernel, of an instruction */
  LEADLINE_OBJECT = 1, /* category, type and shape */
  LEADLINE_PLACE = 2,  /* line, module and operator */
  LEADLINE_LAUNCH = 3, /* the name of its kernel */
} leadline_ref;

typedef struct leadline_run leadline_run;
struct leadline_run {
  void* state; /* the tool's own; NULL at first */
  /* Copies the text and ends it with 0; how long it is, more than `room` where it was cut. */
  size_t (*text)(leadline_run* run, int ref, int64_t number, char* text, size_t room);
  int64_t (*object_bytes)(leadline_run* run, int64_t object);
  /* The value of an option of `options`, as text; NULL for one that there is not. Valid until the next call. */
  const char* (*option)(leadline_run* run, const char* name);
  void (*table)(leadline_run* run, const char* name, const char* columns);
  void (*row)(leadline_run* run, const int64_t* values, size_t count);
  void (*say)(leadline_run* run, const char* name, const char* sentence);
};

typedef void (*leadline_batch_function)(leadline_run* run, const leadline_batch* batch);

/* What a tool is. A function for an event asks for that event. */
typedef struct leadline_tool {
  uint32_t version;
  uint32_t size;
  const char* name;
  const char* doc;
  const char* options; /* "page=4096 rows=20": names and defaults, all whole numbers or words; NULL for none */
  const char* columns; /* columns that cost something and are wanted, such as "launch.flops launch.inputs" */
  void (*start)(leadline_run* run);
  void (*finish)(leadline_run* run);
  leadline_batch_function launch, touched, access, value, operator_, memory, region, step, api, copy, set, synchronize,
      device_memory, shared_access, barrier, block, instruction;
} leadline_tool;

/* The column of that name, NULL where the backend does not give it. */
static inline const int64_t* leadline_column(const leadline_batch* batch, const char* name) {
  for (size_t i = 0; i < batch->columns; ++i)
    if (strcmp(batch->names[i], name) == 0) return batch->values[i];
  return NULL;
}
static inline size_t leadline_text(leadline_run* run, leadline_ref ref, int64_t number, char* text, size_t room) {
  return run->text(run, (int)ref, number, text, room);
}
/* A new table. `columns`: "kernel=name launches time=ns", each with what its numbers are (name, object, place, launch:
 * shown as text), a unit (ns, bytes, %), or nothing. Then a row for each call of leadline_row. */
static inline void leadline_table(leadline_run* run, const char* name, const char* columns) {
  run->table(run, name, columns);
}
static inline void leadline_row(leadline_run* run, const int64_t* values, size_t count) {
  run->row(run, values, count);
}
static inline void leadline_say(leadline_run* run, const char* name, const char* sentence) {
  run->say(run, name, sentence);
}

/* One for a file. */
#define LEADLINE_TOOL(NAME, ...)                                                      \
  __attribute__((visibility("default"))) extern const leadline_tool leadline_tool_it; \
  const leadline_tool leadline_tool_it = {                                            \
      .version = LEADLINE_TOOL_VERSION, .size = (uint32_t)sizeof(leadline_tool), .name = #NAME, __VA_ARGS__};

#ifdef __cplusplus
}
#endif
#endif
