/* The public header from plain C, as another profiler would use it: no Python, no C++. */
#include <leadline/monitor.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct counts {
  int begins;
  int ends;
  int64_t bytes;
  char deepest[256];
};

static void on_event(const leadline_event* event, void* user) {
  struct counts* counts = user;
  if (event->domain == LEADLINE_DOMAIN_MEMORY) {
    counts->bytes += event->of.memory.bytes;
    return;
  }
  if (event->phase == LEADLINE_BEGIN) {
    leadline_frame frames[8];
    size_t count = 8;
    ++counts->begins;
    if (leadline_callpath_get(LEADLINE_SOURCE_OPERATOR | LEADLINE_SOURCE_REGION, frames, &count) != LEADLINE_OK) return;
    counts->deepest[0] = '\0';
    for (size_t i = 0; i < count; ++i) {
      strncat(counts->deepest, "/", sizeof counts->deepest - strlen(counts->deepest) - 1);
      strncat(counts->deepest, frames[i].name, sizeof counts->deepest - strlen(counts->deepest) - 1);
    }
  } else if (event->phase == LEADLINE_END) {
    ++counts->ends;
  }
}

static void emit(leadline_domain domain, leadline_phase phase, const char* name) {
  leadline_event event = leadline_event_of(domain, phase);
  if (domain == LEADLINE_DOMAIN_OPERATOR) {
    event.of.op.name = name;
    event.of.op.sequence = -1;
  } else if (domain == LEADLINE_DOMAIN_MEMORY) {
    event.of.memory.bytes = 64;
  } else {
    event.of.region.name = name;
  }
  leadline_monitor_emit(&event);
}

static int expect(int holds, const char* what) {
  if (!holds) fprintf(stderr, "failed: %s\n", what);
  return holds ? 0 : 1;
}

static int listening(void) {
  struct counts counts = {0};
  leadline_subscription id = 0;
  int failed = 0;
  const uint32_t domains = LEADLINE_DOMAIN_OPERATOR | LEADLINE_DOMAIN_REGION | LEADLINE_DOMAIN_MEMORY;
  failed += expect(leadline_monitor_register(domains, on_event, &counts, &id) == LEADLINE_OK, "register");
  emit(LEADLINE_DOMAIN_REGION, LEADLINE_BEGIN, "epoch");
  emit(LEADLINE_DOMAIN_OPERATOR, LEADLINE_BEGIN, "linear");
  emit(LEADLINE_DOMAIN_OPERATOR, LEADLINE_BEGIN, "addmm");
  emit(LEADLINE_DOMAIN_MEMORY, LEADLINE_INSTANT, NULL);
  emit(LEADLINE_DOMAIN_OPERATOR, LEADLINE_END, NULL);
  emit(LEADLINE_DOMAIN_OPERATOR, LEADLINE_END, NULL);
  emit(LEADLINE_DOMAIN_REGION, LEADLINE_END, NULL);
  failed += expect(counts.begins == 3 && counts.ends == 3, "three begins and three ends");
  failed += expect(strcmp(counts.deepest, "/epoch/linear/addmm") == 0, "the joined path");
  failed += expect(counts.bytes == 64, "memory");
  failed += expect(leadline_monitor_now() > 0, "clock");
  leadline_monitor_finalize();
  failed += expect(leadline_monitor_active(domains) == 0, "nobody listens after finalize");
  return failed;
}

/* The last region heard, and how large the event was said to be. */
struct last {
  char name[32];
  int64_t step;
  uint32_t flags;
  uint32_t struct_size;
};

static void on_region(const leadline_event* event, void* user) {
  struct last* last = user;
  snprintf(last->name, sizeof last->name, "%s", event->of.region.name);
  last->step = event->of.region.step;
  last->flags = event->of.region.flags;
  last->struct_size = event->struct_size;
}

/* Providers compiled with an older header, whose structs were shorter, and with a newer one. Of the heap, so that
 * checkers of memory see a look too far. */
static int other_headers(void) {
  struct last last = {{0}, 0, 0, 0};
  leadline_subscription id = 0;
  int failed = expect(leadline_monitor_register(LEADLINE_DOMAIN_REGION, on_region, &last, &id) == LEADLINE_OK,
                      "register for regions");
  leadline_event whole = leadline_event_of(LEADLINE_DOMAIN_REGION, LEADLINE_INSTANT);
  whole.of.region.name = "step";
  whole.of.region.kind = LEADLINE_REGION_STEP;
  whole.of.region.step = 7;
  whole.of.region.flags = 99;
  const size_t sizes[] = {offsetof(leadline_event, of.region.flags), sizeof whole, sizeof whole + 64};
  for (int i = 0; i < 3; ++i) {
    const size_t size = sizes[i];
    unsigned char* given = malloc(size);
    memset(given, 0xff, size);
    memcpy(given, &whole, size < sizeof whole ? size : sizeof whole);
    ((leadline_event*)given)->struct_size = (uint32_t)size;
    memset(&last, 0, sizeof last);
    leadline_monitor_emit((const leadline_event*)given);
    free(given);
    failed += expect(strcmp(last.name, "step") == 0 && last.step == 7, "what both headers know");
    failed += expect(last.flags == (i == 0 ? 0u : 99u), "what the older one lacks is nothing");
    failed += expect(last.struct_size == sizeof whole, "callbacks get the monitor's own struct");
  }
  leadline_monitor_unregister(id);
  return failed;
}

/* A subscriber that leaves at its first event, from inside its callback, while two threads call. */
struct guest {
  leadline_subscription id;
  int heard;
};

static void on_first(const leadline_event* event, void* user) {
  struct guest* guest = user;
  (void)event;
  __atomic_add_fetch(&guest->heard, 1, __ATOMIC_RELAXED);
  leadline_monitor_unregister(__atomic_load_n(&guest->id, __ATOMIC_ACQUIRE));
}

static void on_any(const leadline_event* event, void* user) {
  (void)event;
  __atomic_add_fetch((int64_t*)user, 1, __ATOMIC_RELAXED);
}

static int g_over = 0;

static void* call_always(void* unused) {
  (void)unused;
  while (!__atomic_load_n(&g_over, __ATOMIC_ACQUIRE)) {
    emit(LEADLINE_DOMAIN_OPERATOR, LEADLINE_BEGIN, "op");
    emit(LEADLINE_DOMAIN_OPERATOR, LEADLINE_END, NULL);
  }
  return NULL;
}

static int coming_and_going(void) {
  int64_t stays = 0;
  leadline_subscription id = 0;
  pthread_t threads[2];
  int failed = expect(leadline_monitor_register(LEADLINE_DOMAIN_OPERATOR, on_any, &stays, &id) == LEADLINE_OK,
                      "register who stays");
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, call_always, NULL);
  for (int round = 0; round < 300; ++round) {
    struct guest guests[3] = {{0, 0}, {0, 0}, {0, 0}};
    for (int i = 0; i < 3; ++i) {
      leadline_subscription own = 0;
      failed += expect(leadline_monitor_register(LEADLINE_DOMAIN_OPERATOR, on_first, &guests[i], &own) == LEADLINE_OK,
                       "register a guest");
      __atomic_store_n(&guests[i].id, own, __ATOMIC_RELEASE);
    }
    emit(LEADLINE_DOMAIN_OPERATOR, LEADLINE_BEGIN, "main");
    emit(LEADLINE_DOMAIN_OPERATOR, LEADLINE_END, NULL);
    for (int i = 0; i < 3; ++i) {
      const leadline_status status = leadline_monitor_unregister(guests[i].id);
      failed += expect(status == LEADLINE_OK || status == LEADLINE_ERROR_INVALID, "a guest leaves once");
    }
    /* Waits for those who left inside their callbacks: their memory ends here. */
    leadline_subscription last = 0;
    leadline_monitor_register(LEADLINE_DOMAIN_MEMORY, on_any, &stays, &last);
    leadline_monitor_unregister(last);
    for (int i = 0; i < 3; ++i) failed += expect(guests[i].heard > 0, "a guest hears something");
  }
  __atomic_store_n(&g_over, 1, __ATOMIC_RELEASE);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  leadline_monitor_unregister(id);
  failed += expect(stays >= 600, "who stays hears all");
  return failed;
}

static leadline_context g_published = 1;

static void on_signal(int number) {
  (void)number;
  g_published = leadline_monitor_published(); /* NOLINT(bugprone-signal-handler): made to be asked from one */
}

/* Nobody collects here, so every place is nowhere; asking is what must not go wrong. */
static int places(void) {
  leadline_subscription id = 0;
  struct counts counts = {0};
  leadline_thread threads[64];
  size_t count = 64;
  int failed = expect(leadline_monitor_register(LEADLINE_DOMAIN_OPERATOR, on_event, &counts, &id) == LEADLINE_OK,
                      "register for places");
  signal(SIGUSR1, on_signal);
  emit(LEADLINE_DOMAIN_OPERATOR, LEADLINE_BEGIN, "op");
  raise(SIGUSR1);
  failed += expect(g_published == 0, "published in a signal handler");
  failed += expect(leadline_monitor_threads(threads, &count) == LEADLINE_OK && count >= 1, "threads");
  count = 0;
  failed += expect(leadline_monitor_threads(NULL, &count) == LEADLINE_ERROR_FULL && count >= 1, "how many threads");
  emit(LEADLINE_DOMAIN_OPERATOR, LEADLINE_END, NULL);
  leadline_path_frame frame;
  memset(&frame, 0, sizeof frame);
  frame.kind = 8;
  frame.name = "kernel";
  leadline_booking booking = leadline_booking_of(LEADLINE_PLACE_THREAD);
  booking.frames = &frame;
  booking.frame_count = 1;
  leadline_context place = 1;
  failed += expect(leadline_monitor_book(&booking, &place) == LEADLINE_ERROR_UNAVAILABLE, "nobody keeps bookings");
  failed += expect(place == 0, "no place without a session");
  leadline_monitor_finalize();
  return failed;
}

int main(void) { return listening() + other_headers() + coming_and_going() + places(); }
