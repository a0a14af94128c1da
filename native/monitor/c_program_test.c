/* The public header from plain C, as another profiler would use it: no Python, no C++. */
#include <leadline/monitor.h>
#include <stdio.h>
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
  leadline_event event;
  memset(&event, 0, sizeof event);
  event.domain = domain;
  event.phase = phase;
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

int main(void) {
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
