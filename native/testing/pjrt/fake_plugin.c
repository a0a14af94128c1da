/* A plug-in of PJRT without a device: a table in the layout that JAX loads, calls that count themselves, copies that
 * copy, and errors on demand. What is not played answers with an error that names its slot. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
enum {
  SLOTS = 106,
  FIRST = 40,
  MOST_WAITING = 64
}; /* of a version before errors had payloads, which JAX asks for where it can */

typedef struct {
  char text[96];
} error_t;
typedef struct {
  size_t bytes;
  char* data;
} buffer_t;
typedef struct {
  size_t size;
  void* extensions;
} arguments_t;
typedef void* (*slot_t)(arguments_t*);

static struct {
  size_t struct_size;
  void* extensions;
  size_t version_size;
  void* version_extensions;
  int32_t major;
  int32_t minor;
  slot_t slots[SLOTS];
} table;

static uint64_t calls[SLOTS];
static int failing = -1; /* slot that answers with an error */
static int client;
static int device;
static int event;
static int executable;

typedef void (*callback_t)(void*, void*);
static struct {
  callback_t callback;
  void* given;
} waiting[MOST_WAITING];
static int waits;
static int holds; /* 1: runs go on until fake_finish */

EXPORT void fake_hold(int hold) { holds = hold; }
EXPORT int fake_finish(void) {
  int finished = waits;
  waits = 0;
  for (int i = 0; i < finished; ++i) waiting[i].callback(NULL, waiting[i].given);
  return finished;
}
EXPORT uint64_t fake_calls(int slot) { return calls[slot]; }
EXPORT void fake_fail(int slot) { failing = slot; }
EXPORT void fake_version(int major) { table.major = major; }

static void* failed(const char* what, int slot) {
  error_t* error = calloc(1, sizeof *error);
  if (error) snprintf(error->text, sizeof error->text, "%s (slot %d)", what, slot);
  return error;
}
#define PLAYED(slot) \
  ++calls[slot];     \
  if (failing == (slot)) return failed("asked to fail", slot)
#define WORD(arguments, byte) (*(void**)((char*)(arguments) + (byte)))
#define NUMBER(arguments, byte) (*(int64_t*)((char*)(arguments) + (byte)))

static void* not_played(arguments_t* arguments) {
  (void)arguments;
  return failed("not played by the fake plug-in", -1);
}
static void* error_destroy(arguments_t* arguments) {
  ++calls[0];
  free(WORD(arguments, 16));
  return NULL;
}
static void* error_message(arguments_t* arguments) {
  error_t* error = WORD(arguments, 16);
  WORD(arguments, 24) = error->text;
  NUMBER(arguments, 32) = (int64_t)strlen(error->text);
  return NULL;
}
static void* error_code(arguments_t* arguments) {
  *(int32_t*)((char*)arguments + 24) = 12; /* not implemented */
  return NULL;
}
static void* initialize(arguments_t* arguments) {
  (void)arguments;
  PLAYED(3);
  return NULL;
}
static void* attributes(arguments_t* arguments) {
  WORD(arguments, 16) = NULL;
  NUMBER(arguments, 24) = 0;
  return NULL;
}
static void* event_await(arguments_t* arguments) {
  (void)arguments;
  PLAYED(8);
  return NULL;
}
static void* event_destroy(arguments_t* arguments) {
  (void)arguments;
  PLAYED(5);
  return NULL;
}
static void* event_on_ready(arguments_t* arguments) {
  PLAYED(9);
  callback_t callback = (callback_t)WORD(arguments, 24);
  if (!holds || waits == MOST_WAITING) {
    callback(NULL, WORD(arguments, 32));
  } else {
    waiting[waits].callback = callback;
    waiting[waits++].given = WORD(arguments, 32);
  }
  return NULL;
}
static void* client_create(arguments_t* arguments) {
  PLAYED(10);
  WORD(arguments, 72) = &client;
  return NULL;
}
static void* platform_name(arguments_t* arguments) {
  PLAYED(12);
  WORD(arguments, 24) = "fake";
  NUMBER(arguments, 32) = 4;
  return NULL;
}
static void* compile(arguments_t* arguments) {
  PLAYED(20);
  WORD(arguments, 48) = &executable;
  return NULL;
}
static size_t bytes_of(arguments_t* arguments) {
  size_t bytes = 4; /* every type is one of 4 bytes here */
  const int64_t* dimensions = WORD(arguments, 40);
  for (int64_t i = 0; i < NUMBER(arguments, 48); ++i) bytes *= (size_t)dimensions[i];
  return bytes;
}
static void* from_host(arguments_t* arguments) {
  PLAYED(22);
  buffer_t* made = calloc(1, sizeof *made);
  if (!made) abort();
  made->bytes = bytes_of(arguments);
  made->data = malloc(made->bytes);
  if (made->data) memcpy(made->data, WORD(arguments, 24), made->bytes);
  WORD(arguments, 104) = &event;
  WORD(arguments, 112) = made;
  return NULL;
}
static void* hardware_id(arguments_t* arguments) {
  PLAYED(31);
  *(int32_t*)((char*)arguments + 24) = 3;
  return NULL;
}
static void* get_executable(arguments_t* arguments) {
  PLAYED(51);
  WORD(arguments, 24) = &executable;
  return NULL;
}
static void* executable_gone(arguments_t* arguments) {
  (void)arguments;
  ++calls[40];
  return NULL;
}
static void* output_count(arguments_t* arguments) {
  PLAYED(44);
  NUMBER(arguments, 24) = 1;
  return NULL;
}
/* One result of 8,000 bytes on each device, where the caller has room for it. */
static void* execute(arguments_t* arguments) {
  PLAYED(55);
  void*** lists = WORD(arguments, 56);
  for (int64_t i = 0; lists && i < NUMBER(arguments, 40); ++i) {
    buffer_t* made = calloc(1, sizeof *made);
    if (!made) abort();
    made->bytes = 8000;
    lists[i][0] = made;
  }
  return NULL;
}
static void* buffer_event(arguments_t* arguments) {
  PLAYED(72);
  WORD(arguments, 24) = &event;
  return NULL;
}
static void* add_chunk(arguments_t* arguments) {
  PLAYED(78);
  WORD(arguments, 32) = &event;
  return NULL;
}
static void* transfer_data(arguments_t* arguments) {
  PLAYED(102);
  WORD(arguments, 64) = &event;
  return NULL;
}
static void* manager_device(arguments_t* arguments) {
  PLAYED(105);
  WORD(arguments, 24) = &device;
  return NULL;
}
static void* buffer_destroy(arguments_t* arguments) {
  PLAYED(58);
  buffer_t* gone = WORD(arguments, 16);
  free(gone->data);
  free(gone);
  return NULL;
}
static void* on_device_size(arguments_t* arguments) {
  PLAYED(64);
  NUMBER(arguments, 24) = (int64_t)((buffer_t*)WORD(arguments, 16))->bytes;
  return NULL;
}
static void* buffer_device(arguments_t* arguments) {
  PLAYED(65);
  WORD(arguments, 24) = &device;
  return NULL;
}
static void* copy_to_device(arguments_t* arguments) {
  PLAYED(69);
  WORD(arguments, 32) = WORD(arguments, 16);
  return NULL;
}
static void* to_host(arguments_t* arguments) {
  PLAYED(70);
  buffer_t* from = WORD(arguments, 16);
  if (WORD(arguments, 32)) memcpy(WORD(arguments, 32), from->data, from->bytes);
  NUMBER(arguments, 40) = (int64_t)from->bytes;
  WORD(arguments, 48) = &event;
  return NULL;
}

/* Nanoseconds of a call, over so many of the same. */
EXPORT double fake_loop(int slot, arguments_t* arguments, int times) {
  struct timespec begun;
  struct timespec ended;
  clock_gettime(CLOCK_MONOTONIC, &begun);
  for (int i = 0; i < times; ++i) {
    if (((slot_t volatile*)table.slots)[slot](arguments)) return -1;
  }
  clock_gettime(CLOCK_MONOTONIC, &ended);
  return ((double)(ended.tv_sec - begun.tv_sec) * 1e9 + (double)(ended.tv_nsec - begun.tv_nsec)) / times;
}

EXPORT const void* GetPjrtApi(void) {
  if (table.struct_size) return &table;
  table.struct_size = FIRST + SLOTS * sizeof(slot_t);
  table.version_size = 24;
  table.minor = 70;
  for (int i = 0; i < SLOTS; ++i) table.slots[i] = not_played;
  table.slots[0] = error_destroy;
  table.slots[1] = error_message;
  table.slots[2] = error_code;
  table.slots[3] = initialize;
  table.slots[4] = attributes;
  table.slots[5] = event_destroy;
  table.slots[8] = event_await;
  table.slots[9] = event_on_ready;
  table.slots[10] = client_create;
  table.slots[12] = platform_name;
  table.slots[20] = compile;
  table.slots[22] = from_host;
  table.slots[31] = hardware_id;
  table.slots[40] = executable_gone;
  table.slots[44] = output_count;
  table.slots[51] = get_executable;
  table.slots[55] = execute;
  table.slots[58] = buffer_destroy;
  table.slots[64] = on_device_size;
  table.slots[65] = buffer_device;
  table.slots[69] = copy_to_device;
  table.slots[70] = to_host;
  table.slots[72] = buffer_event;
  table.slots[78] = add_chunk;
  table.slots[102] = transfer_data;
  table.slots[105] = manager_device;
  return &table;
}
