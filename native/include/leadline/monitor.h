/* The only door between those who see events (providers) and those who use them (subscribers).
 *
 * Plain C so that other profilers can use it. Promises: no function throws, blocks on a lock, takes the GIL or
 * allocates on the path of an event. Everything handed to a callback is valid during the callback only.
 * Times are CLOCK_MONOTONIC nanoseconds, sizes are bytes.
 */
#ifndef LEADLINE_MONITOR_H
#define LEADLINE_MONITOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LEADLINE_MONITOR_VERSION 2
#define LEADLINE_EXPORT __attribute__((visibility("default")))

typedef enum leadline_domain {
  LEADLINE_DOMAIN_OPERATOR = 1u << 0,     /* framework operators, begin and end */
  LEADLINE_DOMAIN_MEMORY = 1u << 1,       /* tensor memory, allocate and free */
  LEADLINE_DOMAIN_REGION = 1u << 2,       /* user ranges, phases and steps, begin and end */
  LEADLINE_DOMAIN_GPU_API = 1u << 3,      /* driver and runtime calls on the host, begin and end */
  LEADLINE_DOMAIN_GPU_ACTIVITY = 1u << 4, /* finished work on a device, asynchronous, any thread */
  LEADLINE_DOMAIN_GPU_MODULE = 1u << 5,   /* device code loaded or unloaded */
  LEADLINE_DOMAIN_COMPILE = 1u << 6,      /* compilation by the framework, begin and end */
  LEADLINE_DOMAIN_BOOKING = 1u << 7,      /* what another source has measured, at a path that it names */
} leadline_domain;

typedef enum leadline_phase { LEADLINE_BEGIN = 0, LEADLINE_END = 1, LEADLINE_INSTANT = 2 } leadline_phase;

/* Ids of leadline_source are bits of the mask given to leadline_callpath_get. */
typedef enum leadline_source {
  LEADLINE_SOURCE_PYTHON = 1u << 0,
  LEADLINE_SOURCE_MODULE = 1u << 1,
  LEADLINE_SOURCE_OPERATOR = 1u << 2,
  LEADLINE_SOURCE_REGION = 1u << 3,
  LEADLINE_SOURCE_API = 1u << 4,
  LEADLINE_SOURCE_NATIVE = 1u << 5,
  LEADLINE_SOURCE_ALL = 0xffffffffu,
} leadline_source;

/* A place in the calling context tree, opaque; 0 is "nowhere". Taken at the launch, given back with the activity. */
typedef uint64_t leadline_context;

/* Sequence number and forward thread of the backward operator that this thread is about to run; 0 when unknown. */
typedef int (*leadline_wrapped)(int64_t* sequence, uint64_t* forward_thread);

typedef struct leadline_operator_event {
  const char* name;
  int64_t sequence;         /* autograd sequence number, -1 for none */
  uint64_t thread;          /* the framework's own number of this thread, needed where sequence is given */
  uint64_t forward_thread;  /* of a backward operator: the framework's number of the forward thread, else 0 */
  uint32_t nesting;         /* operators open on this thread, this one not counted */
  uint8_t backward;         /* 1: run by autograd */
  uint8_t stable_name;      /* 1: the pointer means this name as long as name_generation stays what it is */
  uint16_t name_generation; /* of stable names: another number where a name may have been freed since */
  const char* inputs;       /* shapes and dtypes as JSON when asked for, else NULL */
  leadline_wrapped wrapped; /* of an operator that wraps a backward operator to come, and hangs where that one will:
                               says which it is if anything begins before it; else NULL */
  uint8_t stable_inputs;    /* 1: the pointer means this text for good */
} leadline_operator_event;

typedef struct leadline_memory_event {
  uint64_t address;
  int64_t bytes;           /* negative: freed; INT64_MIN: freed, size not known to the provider */
  int32_t device_type;     /* 0 CPU, 1 CUDA, 2 HIP, 4 XPU, 5 MPS, 6 HPU, 7 XLA, 8 MTIA, any other number: another
                              type; devices are numbered anew in each type */
  int32_t device;          /* -1 for the CPU */
  int64_t allocated_total; /* framework's running total on the device, -1 where unknown */
  int64_t reserved_total;  /* -1 where unknown */
} leadline_memory_event;

typedef enum leadline_region_kind {
  LEADLINE_REGION_USER = 0,
  LEADLINE_REGION_PHASE = 1, /* forward, backward, optimizer, zero_grad, data loading, compile */
  LEADLINE_REGION_STEP = 2,  /* instant: a training step ended here */
} leadline_region_kind;

/* What a provider says that a phase means; its name is for people only. */
typedef enum leadline_region_flag {
  LEADLINE_REGION_FLAG_OUTERMOST = 1u << 0, /* what runs inside is shown as if no phase enclosed it: the program's own
                                               code, called by the framework */
  LEADLINE_REGION_FLAG_ENDS_STEP = 1u << 1, /* where it ends for the first time, a training step ends each time, unless
                                               the program tells its steps itself */
  LEADLINE_REGION_FLAG_DATA_WAIT = 1u << 2, /* its wall time outside operators is waiting for data */
  LEADLINE_REGION_FLAG_INSIDE = 1u << 3,    /* opened by a library inside the call that a line makes, not by the line
                                               for what follows it: it hangs below the line */
  LEADLINE_REGION_FLAG_SUSPENDS = 1u << 4   /* of an END: the call is suspended here and is not over. Its time so far is
                                               booked; the call counts at the END without this flag */
} leadline_region_flag;

typedef struct leadline_region_event {
  const char* name;
  const char* detail; /* JSON object (NVTX payload, category, colour) or NULL */
  leadline_region_kind kind;
  int64_t step;              /* LEADLINE_REGION_STEP: number of the step that ended */
  leadline_context asked_at; /* work of a helper thread: the place that asked for it, 0 where unknown. The region hangs
                                there when nothing of its own thread encloses it */
  uint32_t flags;            /* leadline_region_flag */
  int64_t* stays_ns; /* of one call in several stays (a decorated coroutine or generator), else NULL. BEGIN reads what
                        its stays took before, END writes what they took with the one that ends */
} leadline_region_event;

typedef enum leadline_gpu_kind {
  LEADLINE_GPU_LAUNCH = 0,
  LEADLINE_GPU_COPY = 1,
  LEADLINE_GPU_SET = 2,
  LEADLINE_GPU_SYNC = 3,
  LEADLINE_GPU_ALLOC = 4,
  LEADLINE_GPU_FREE = 5,
  LEADLINE_GPU_GRAPH_CREATE = 6,
  LEADLINE_GPU_GRAPH_INSTANTIATE = 7,
  LEADLINE_GPU_GRAPH_LAUNCH = 8,
  LEADLINE_GPU_EVENT_RECORD = 9,
  LEADLINE_GPU_STREAM_WAIT = 10,
  LEADLINE_GPU_OTHER = 11,
} leadline_gpu_kind;

/* Frames, times and the trace window come from this; bytes and waits as metrics come as activity events without a name.
 */
typedef struct leadline_gpu_api_event {
  const char* name; /* the vendor's function name */
  leadline_gpu_kind kind;
  uint64_t correlation;        /* vendor's correlation id */
  int32_t device;              /* -1 where unknown */
  int64_t stream;              /* -1 where unknown or all */
  int64_t bytes;               /* copy, set, alloc, free; 0 elsewhere */
  int64_t awaits;              /* sync, stream wait: stream awaited, -1 for all or none */
  uint64_t awaits_correlation; /* record call of the event awaited, 0 for none */
  int32_t device_type;         /* as in leadline_memory_event; 0 is CUDA here */
} leadline_gpu_api_event;

/* One value for a metric of schema/leadline.toml (its number there). */
typedef struct leadline_measure {
  uint32_t metric;
  int64_t value;
} leadline_measure;

/* What stands between the launch of a graph and its work. */
typedef enum leadline_via {
  LEADLINE_VIA_CAPTURE = 0, /* "captured at" and the path in `via`; nothing where that is 0 */
  LEADLINE_VIA_INSTANTIATE =
      1,                   /* captured before measuring: "instantiated at" and the path in `via`; nodes by number */
  LEADLINE_VIA_BEFORE = 2, /* made before measuring: "captured before profiling", graph and nodes by number */
} leadline_via;

/* One of several places that a piece of work was made for (a fused kernel). */
typedef struct leadline_share {
  leadline_context context;
  uint32_t millionths; /* of the work; taken relative to the sum of all shares */
} leadline_share;

/* A frame below the frame of a piece of work, such as an instruction of a kernel, with what was measured there. */
typedef struct leadline_activity_child {
  uint8_t frame_kind; /* FrameKind */
  const char* name;
  const char* detail; /* JSON object or NULL */
  const char* file;   /* or NULL */
  int32_t line;       /* 0 where unknown */
  uint64_t address;   /* 0 for none */
  const leadline_measure* measures;
  uint32_t measure_count;
} leadline_activity_child;

/* As duration_ns: the piece of work was told before, and only what stands below its frame is new. */
#define LEADLINE_TOLD_BEFORE INT64_C(-1)

typedef struct leadline_gpu_activity_event {
  leadline_context context; /* where it was launched; 0: unknown, counted as loss gpu_record_unattributed */
  leadline_context via;     /* CUDA graphs: the path at capture or instantiation; 0 for none */
  uint8_t frame_kind;       /* kernel, copy, collective... (FrameKind) */
  uint8_t event_kind;       /* EventKind, for the trace window */
  uint8_t via_kind;         /* leadline_via */
  const char* name;         /* NULL: no work of its own, the measures belong to `context` itself (idle, waiting) */
  const char* detail;       /* JSON object or NULL; must be the same for the same name and context */
  const char* file;         /* source of the kernel where known, else NULL */
  int32_t line;             /* 0 where unknown */
  int32_t device;
  int64_t stream;
  int64_t start_ns;
  int64_t duration_ns;
  uint64_t correlation;
  uint64_t graph_node; /* CUDA graphs: number of the graph << 32 | number of the node in it, else 0 */
  int64_t bytes;
  const leadline_measure* measures; /* further metrics of this one piece of work (gpu_time is added by itself,
                                       but for event kind scratch) */
  uint32_t measure_count;
  uint64_t frame; /* not 0: for the life of the process the same number means the same frame_kind, name, detail, file
                     and line, so that none of them needs to be looked up again */
  int32_t device_type; /* as in leadline_memory_event; 0 is CUDA here */
  /* Where `share_count` is not 0 the work hangs at each of these places instead of `context`, with its share of every
   * value: integers that add up to the value. It counts once at each. A trace window keeps one event, at the first. */
  const leadline_share* shares;
  uint32_t share_count;
  const leadline_activity_child* children; /* not where `name` is NULL */
  uint32_t child_count;
} leadline_gpu_activity_event;

/* A frame of a path that a booking names. Text is copied, and must be UTF-8. */
typedef struct leadline_path_frame {
  uint8_t kind;       /* FrameKind; not root, process or thread */
  const char* name;   /* not NULL */
  const char* module; /* class of an nn.Module frame, build id of a native frame; or NULL */
  const char* file;   /* or NULL */
  const char* detail; /* JSON object or NULL */
  int32_t line;       /* 0 where unknown */
  int32_t first_line; /* 0 where unknown */
  uint64_t address;   /* 0 for none */
} leadline_path_frame;

/* Any number of values of one metric, in its unit. */
typedef struct leadline_total {
  uint32_t metric; /* its number in schema/leadline.toml */
  uint64_t count;
  int64_t sum;
  int64_t min;
  int64_t max;
  double sum_squares; /* 0 where unknown: as if all values were equal */
} leadline_total;

/* Below the calling thread itself, wherever it is. */
#define LEADLINE_PLACE_THREAD UINT64_MAX

/* What was measured elsewhere (another profiler, a compiled program, a file), booked when it is known. It adds to what
 * is measured at the same path. Nothing is taken off `time` of the frames around it, so wall time of the program's own
 * threads, which is measured already, is better left out. */
typedef struct leadline_booking {
  uint32_t struct_size;              /* sizeof(leadline_booking) of who made it, see leadline_booking_of() */
  int32_t device_type;               /* as in leadline_memory_event; not looked at where `device` is -1 */
  leadline_context below;            /* a place of this session, or LEADLINE_PLACE_THREAD */
  const leadline_path_frame* frames; /* from there on, outermost first; none: at the place itself */
  const leadline_total* totals;      /* at the last frame; none: the path alone */
  uint32_t frame_count;
  uint32_t total_count;
  int32_t device; /* -1: the CPU */
  int32_t stream; /* -1: none */
} leadline_booking;

typedef struct leadline_gpu_module_event {
  uint64_t module; /* vendor's id */
  const void* image;
  size_t image_bytes;
  int32_t device;
  uint8_t loaded; /* 1 loaded, 0 unloaded */
} leadline_gpu_module_event;

/* Grows at its end only, and so do the members of `of`; what a program compiled with an older header passes is read as
 * far as it goes. A provider sets struct_size and version with leadline_event_of(), a callback may rely on both. */
typedef struct leadline_event {
  uint32_t struct_size; /* sizeof(leadline_event) of who made it; 0: of the header that the monitor was built with */
  uint32_t version;     /* LEADLINE_MONITOR_VERSION of who made it */
  leadline_domain domain;
  leadline_phase phase;
  int64_t time_ns;   /* emit: 0 lets the monitor read the clock; callbacks: when it happened */
  const void* token; /* joins an END with its BEGIN on the thread; NULL: the innermost of the domain */
  /* Callbacks only: 64 bits that belong to this subscription and stay what they are set to, 0 at first. NULL: emit. */
  uint64_t* scope_data;  /* from the BEGIN of a scope to its END; NULL: an event that does not nest, or no memory */
  uint64_t* thread_data; /* as long as the thread lives */
  union {
    leadline_operator_event op;
    leadline_memory_event memory;
    leadline_region_event region;
    leadline_gpu_api_event gpu_api;
    leadline_gpu_activity_event gpu_activity;
    leadline_gpu_module_event gpu_module;
    leadline_region_event compile;
    leadline_booking booking;
  } of;
} leadline_event;
/* An event to fill in. */
static inline leadline_event leadline_event_of(leadline_domain domain, leadline_phase phase) {
  leadline_event event;
  memset(&event, 0, sizeof event);
  event.struct_size = sizeof event;
  event.version = LEADLINE_MONITOR_VERSION;
  event.domain = domain;
  event.phase = phase;
  return event;
}

/* A booking to fill in: of the CPU, and of no stream. */
static inline leadline_booking leadline_booking_of(leadline_context below) {
  leadline_booking booking;
  memset(&booking, 0, sizeof booking);
  booking.struct_size = sizeof booking;
  booking.below = below;
  booking.device = -1;
  booking.stream = -1;
  return booking;
}

typedef struct leadline_frame {
  uint8_t kind; /* FrameKind of schema/leadline.toml */
  int32_t line;
  const char* name; /* valid until the thread's next event */
  const char* file;
  uint64_t address;
} leadline_frame;

typedef void (*leadline_callback)(const leadline_event* event, void* user);
typedef uint32_t leadline_subscription; /* 0 is none */

typedef enum leadline_status {
  LEADLINE_OK = 0,
  LEADLINE_ERROR_INVALID = 1,     /* an argument makes no sense */
  LEADLINE_ERROR_FULL = 2,        /* no room: subscribers, or the buffer given (count says what is needed) */
  LEADLINE_ERROR_UNAVAILABLE = 3, /* no provider for it here */
  LEADLINE_ERROR_NO_MEMORY = 4,
} leadline_status;

typedef struct leadline_thread {
  uint64_t tid;
  leadline_context place; /* inside its innermost open begin as last known; 0: outside all, or not known */
} leadline_thread;

/* Subscribe to the domains of a mask. Callbacks run on the thread of the event. At most 8 subscribers. */
LEADLINE_EXPORT leadline_status leadline_monitor_register(uint32_t domains, leadline_callback callback, void* user,
                                                          leadline_subscription* out);
/* After it returns no callback of this subscription runs or will run, so do not hold what a callback waits for. Called
 * inside a callback (of any subscription) it does not wait: none begins any more, those that run on other threads end.
 */
LEADLINE_EXPORT leadline_status leadline_monitor_unregister(leadline_subscription subscription);
/* Ends all subscriptions and forgets every thread's state. */
LEADLINE_EXPORT void leadline_monitor_finalize(void);

/* For providers: hand over an event. BEGIN and END of operators, regions, API calls and compilations nest per thread;
 * the monitor keeps the thread's shadow stack. Activity and memory events do not nest. */
LEADLINE_EXPORT void leadline_monitor_emit(const leadline_event* event);
/* For providers: whether anyone listens to any of these domains (one relaxed load). */
LEADLINE_EXPORT uint32_t leadline_monitor_active(uint32_t domains);
/* The calling thread's present place (inside the innermost open begin), or 0. */
LEADLINE_EXPORT leadline_context leadline_monitor_context(void);
/* The same as it was published last, without bringing it up to date: for signal handlers. */
LEADLINE_EXPORT leadline_context leadline_monitor_published(void);
/* What every thread with events has published. *count as in leadline_callpath_get. Takes no lock. */
LEADLINE_EXPORT leadline_status leadline_monitor_threads(leadline_thread* threads, size_t* count);
/* For providers: 1 when a Python frame on the path to a place is of this source file, else 0. Walks the path, so not
 * for the path of an event. Any thread. */
LEADLINE_EXPORT int leadline_monitor_context_in_file(leadline_context context, const char* file);
/* The frames on the path to a place of this session, from the process's thread down to the place itself. `*count` as in
 * leadline_callpath_get; names live as long as the session. LEADLINE_ERROR_INVALID: no place of this session. Walks the
 * path, so not for the path of an event. Any thread. */
LEADLINE_EXPORT leadline_status leadline_monitor_path(leadline_context context, leadline_frame* frames, size_t* count);
/* Count a loss (LossKind of schema/leadline.toml). `detail` is kept once per kind; may be NULL. */
LEADLINE_EXPORT void leadline_monitor_loss(uint32_t kind, uint64_t count, const char* detail);
/* For providers: a number for leadline_gpu_activity_event.frame that nobody has been given before. */
LEADLINE_EXPORT uint64_t leadline_monitor_new_frame(void);
/* For providers: book a value of a metric (schema/leadline.toml) at the calling thread's present place; nothing while
 * measuring is paused. `time_ns`: when, 0 for now. */
LEADLINE_EXPORT void leadline_monitor_measure(uint32_t metric, int64_t value, int64_t time_ns);
/* Book at a path. Any thread, also while measuring is paused: it belongs to when it was measured. Takes time and memory
 * where the path is new, so not for the path of an event. *place (may be NULL): the place of the last frame, for what
 * hangs below it; 0 where no session runs. LEADLINE_ERROR_INVALID: a frame or total makes no sense, or `below` is no
 * place of this session; nothing is booked then. LEADLINE_ERROR_UNAVAILABLE: nobody listens, or inside a callback. */
LEADLINE_EXPORT leadline_status leadline_monitor_book(const leadline_booking* booking, leadline_context* place);
/* Nanoseconds of CLOCK_MONOTONIC, as cheap as the machine allows. */
LEADLINE_EXPORT int64_t leadline_monitor_now(void);

/* The calling thread's joined call path from root to leaf, filtered by a mask of leadline_source.
 * *count: in: room in frames; out: frames of the path. LEADLINE_ERROR_FULL when there was too little room. */
LEADLINE_EXPORT leadline_status leadline_callpath_get(uint32_t sources, leadline_frame* frames, size_t* count);

#ifdef __cplusplus
}
#endif
#endif
