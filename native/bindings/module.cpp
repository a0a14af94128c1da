// leadline._native: what python/leadline/capture calls. Conversions only; the session does the work.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/flight_recorder.h"
#include "base/losses.h"
#include "base/optimizer_turns.h"
#include "bindings/bindings.h"
#include "gpu/kernel_names.h"
#include "leadline/monitor.h"
#include "session/session.h"
#include "stack/python_frames.h"

namespace nb = nanobind;
using namespace leadline;

namespace {

const char* g_python_frames_missing = nullptr;  // why, or nullptr when they are read

void load_python() {
  Monitor& monitor = Monitor::instance();
  if (monitor.python() != nullptr || g_python_frames_missing != nullptr) return;
  monitor.set_python(load_python_source(&g_python_frames_missing));
}

void start(const std::string& segment_path, uint64_t max_nodes, double flush_interval_s, uint64_t trace_max_events,
           bool record_shapes, bool memory, bool track_modules) {
  load_python();
  SessionOptions options;
  options.segment_path = segment_path;
  options.max_nodes = max_nodes;
  options.flush_interval_s = flush_interval_s;
  options.trace_max_events = trace_max_events;
  options.memory = memory;
  options.shapes = record_shapes;
  std::string why;
  bool started = false;
  {
    const nb::gil_scoped_release no_gil;
    started = Session::instance().start(options, &why);
  }
  if (!started) throw std::runtime_error(why);
  if (g_python_frames_missing != nullptr)
    losses().count(LossKind::kPythonFramesUnavailable, 1, g_python_frames_missing);
  bindings::remember_modules(track_modules);
}

nb::dict losses_dict() {
  nb::dict result;
  for (size_t i = 0; i < kLossKindCount; ++i) {
    const auto kind = static_cast<LossKind>(i);
    const uint64_t total = losses().total(kind);
    if (total == 0) continue;
    nb::list entry;
    entry.append(total);
    std::string sentences;
    for (const LossCounters::Told& one : losses().told(kind)) {
      if (!sentences.empty() && !one.sentence.empty()) sentences += ' ';
      sentences += one.sentence;
    }
    entry.append(sentences);
    result[nb::str(to_string(kind).data())] = entry;
  }
  return result;
}

nb::dict stats() {
  const SessionCost now = Session::instance().cost();
  nb::dict cost;
  cost["callbacks_ns"] = now.callbacks_ns;
  cost["flush_ns"] = now.flush_ns;
  cost["events"] = now.events;
  cost["held_bytes"] = now.held_bytes;
  nb::dict result;
  result["losses"] = losses_dict();
  result["cost"] = cost;
  result["nodes"] = now.nodes;
  result["threads"] = now.threads;
  result["steps"] = now.steps;
  result["paused_ns"] = now.paused_ns;
  result["clock"] = clock_source() == ClockSource::kCounter ? "counter" : "system call";
  result["python_frames"] = g_python_frames_missing == nullptr;
  result["python_frames_missing"] = g_python_frames_missing == nullptr ? "" : g_python_frames_missing;
  return result;
}

nb::dict stop() {
  {
    const nb::gil_scoped_release no_gil;
    Session::instance().stop_providers();
  }
  const nb::dict last = stats();
  WriteResult written;
  {
    const nb::gil_scoped_release no_gil;
    written = Session::instance().stop();
  }
  last["written"] = static_cast<bool>(written);
  last["write_status"] = Session::instance().write_status();
  last["losses"] = losses_dict();
  return last;
}

bool flush() {
  const nb::gil_scoped_release no_gil;
  return static_cast<bool>(Session::instance().flush());
}

// Tokens of regions, so that an end finds its begin among interleaved coroutines.
std::atomic<uintptr_t> g_next_token{1};

uintptr_t region(leadline_region_kind kind, leadline_phase phase, const char* name, const char* detail, uintptr_t token,
                 uint32_t flags = 0, int64_t* stays_ns = nullptr) {
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_REGION;
  event.phase = phase;
  if (phase == LEADLINE_BEGIN) token = (g_next_token.fetch_add(1, std::memory_order_relaxed) << 1) | 1;
  event.token = reinterpret_cast<const void*>(token);
  event.of.region.kind = kind;
  event.of.region.name = name;
  event.of.region.detail = detail;
  event.of.region.flags = flags;
  event.of.region.stays_ns = stays_ns;
  leadline_monitor_emit(&event);
  return token;
}

uintptr_t region_begin(const char* name, const std::optional<std::string>& detail, int64_t stays_ns) {
  return region(LEADLINE_REGION_USER, LEADLINE_BEGIN, name, detail ? detail->c_str() : nullptr, 0, 0, &stays_ns);
}

int64_t region_suspend(uintptr_t token) {
  int64_t stays_ns = 0;
  region(LEADLINE_REGION_USER, LEADLINE_END, "", nullptr, token, LEADLINE_REGION_FLAG_SUSPENDS, &stays_ns);
  return stays_ns;
}

void step(int64_t number) {
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_REGION;
  event.phase = LEADLINE_INSTANT;
  event.of.region.name = "step";
  event.of.region.kind = LEADLINE_REGION_STEP;
  event.of.region.step = number;
  leadline_monitor_emit(&event);
}

nb::list callpath(uint32_t sources) {
  load_python();
  std::vector<leadline_frame> frames(256);
  size_t count = frames.size();
  if (leadline_callpath_get(sources, frames.data(), &count) == LEADLINE_ERROR_FULL) {
    frames.resize(count);
    leadline_callpath_get(sources, frames.data(), &count);
  }
  nb::list result;
  for (size_t i = 0; i < count && i < frames.size(); ++i) {
    nb::dict frame;
    frame["kind"] = to_string(static_cast<FrameKind>(frames[i].kind)).data();
    frame["name"] = frames[i].name;
    frame["file"] = frames[i].file;
    frame["line"] = frames[i].line;
    result.append(frame);
  }
  return result;
}

void count_loss(const std::string& kind, uint64_t count, const std::string& detail) {
  for (size_t i = 0; i < kLossKindCount; ++i) {
    if (to_string(static_cast<LossKind>(i)) == kind) {
      losses().count(static_cast<LossKind>(i), count, detail);
      return;
    }
  }
  throw nb::value_error("unknown loss kind");
}

void set_process_info(const nb::dict& info) {
  ProcessDetails details;
  if (info.contains("name")) details.name = nb::cast<std::string>(info["name"]);
  if (info.contains("rank") && !info["rank"].is_none()) details.rank = nb::cast<int32_t>(info["rank"]);
  if (info.contains("local_rank") && !info["local_rank"].is_none())
    details.local_rank = nb::cast<int32_t>(info["local_rank"]);
  if (info.contains("start_ns")) details.start_ns = nb::cast<int64_t>(info["start_ns"]);
  const nb::gil_scoped_release no_gil;  // a segment may be being written
  Session::instance().set_process(details);
}

void module_register(uintptr_t parent, uintptr_t child, std::string name) {
  ModuleNames& names = Monitor::instance().modules();
  if (child == 0) {
    names.remove(parent, name);
  } else if (parent == 0) {
    names.name_root(child, std::move(name));
  } else {
    names.add(parent, child, std::move(name));
  }
}

PyObject* g_fork_is_over = nullptr;  // what Python does then; kept for ever

#if PY_VERSION_HEX >= 0x030C0000
PyFrameObject* g_forks = nullptr;  // what has called os.fork, and at which instruction
int g_forks_at = 0;

void fork_is_called_here() {
  Py_XSETREF(g_forks, reinterpret_cast<PyFrameObject*>(Py_XNewRef(PyEval_GetFrame())));
  if (g_forks != nullptr) g_forks_at = PyFrame_GetLasti(g_forks);
}

// False from the first time on that it was true.
bool is_still_forking() {
  if (g_forks != nullptr && PyEval_GetFrame() != g_forks && PyFrame_GetLasti(g_forks) == g_forks_at) return true;
  Py_CLEAR(g_forks);
  return false;
}
#else
void fork_is_called_here() {}
bool is_still_forking() { return false; }
#endif

int resume_after_fork(void*) {
  if (is_still_forking() && Py_AddPendingCall(resume_after_fork, nullptr) == 0) return 0;
  {
    const nb::gil_scoped_release no_gil;  // another thread that forks may wait for its segment
    Session::instance().after_fork_in_parent();
  }
  if (g_fork_is_over != nullptr) {
    PyObject* const result = PyObject_CallNoArgs(g_fork_is_over);
    if (result == nullptr) PyErr_Clear();
    Py_XDECREF(result);
  }
  return 0;
}

// Python 3.13 counts threads, to warn of a fork, when its hooks for the parent have run. A pending call comes after
// that, or in a later hook where that runs Python code: then it waits. Pending calls run on the main
// thread, which need not come to them soon when another thread forks.
void after_fork_in_parent() {
  const bool main_thread = syscall(SYS_gettid) == getpid();
  if (main_thread) fork_is_called_here();
  if (!main_thread || Py_AddPendingCall(resume_after_fork, nullptr) != 0) resume_after_fork(nullptr);
}

}  // namespace

NB_MODULE(_native, m) {
  m.def("start", &start, nb::arg("segment_path"), nb::arg("max_nodes"), nb::arg("flush_interval_s"),
        nb::arg("trace_max_events"), nb::arg("record_shapes"), nb::arg("memory"), nb::arg("track_modules"));
  m.def("stop", &stop);
  // Without the GIL: they wait for callbacks of other threads, which may wait for it.
  m.def(
      "pause", [] { Session::instance().pause(); }, nb::call_guard<nb::gil_scoped_release>());
  m.def(
      "resume", [] { Session::instance().resume(); }, nb::call_guard<nb::gil_scoped_release>());
  m.def("flush", &flush);
  m.def("is_running", [] { return Session::instance().running(); });
  m.def("stats", &stats);
  m.def(
      "write_status", [] { return Session::instance().write_status(); }, nb::call_guard<nb::gil_scoped_release>());
  m.def(
      "flight_announce",
      [](const std::string& group, const std::string& description, uint32_t size, uint32_t rank, int64_t since,
         int64_t elements) {
        FlightRecorder::announce({group, description, size, rank, elements, {}, static_cast<uint64_t>(since)});
      },
      nb::arg("group"), nb::arg("description"), nb::arg("size"), nb::arg("rank"), nb::arg("since"),
      nb::arg("elements"));
  m.def(
      "flight_announced", [](int64_t told) { return flight_recorder().announced(static_cast<uint64_t>(told)); },
      nb::arg("told") = -1);
  m.def(
      "flight_attached", [](bool attached) { flight_recorder().set_attached(attached); }, nb::arg("attached"));
  m.def("flight_standing_ns", [] { return flight_recorder().standing_ns(); });
  m.def(
      "flight_done", [](uint64_t number) { flight_recorder().done(number); }, nb::arg("number"));
  m.def(
      "flight_usual",
      [](const std::string& group, const std::string& description, uint32_t size, uint32_t rank, int64_t since) {
        flight_recorder().set_usual({group, description, size, rank, -1, {}, static_cast<uint64_t>(since)});
      },
      nb::arg("group"), nb::arg("description"), nb::arg("size"), nb::arg("rank"), nb::arg("since"));
  // A call that is suspended and resumed is one call: region_suspend() returns what its stays took, which
  // region_begin() of the next stay gets.
  m.def("region_begin", &region_begin, nb::arg("name"), nb::arg("detail") = nb::none(), nb::arg("stays_ns") = 0);
  m.def("region_suspend", &region_suspend, nb::arg("token"));
  m.def(
      "region_end", [](uintptr_t token) { region(LEADLINE_REGION_USER, LEADLINE_END, "", nullptr, token); },
      nb::arg("token") = 0);
  // What a phase means: see leadline_region_flag.
  m.def(
      "phase_begin",
      [](const char* name, const std::optional<std::string>& detail, bool outermost, bool ends_step, bool data_wait) {
        uint32_t flags = 0;
        if (outermost) flags |= LEADLINE_REGION_FLAG_OUTERMOST;
        if (ends_step) flags |= LEADLINE_REGION_FLAG_ENDS_STEP;
        if (data_wait) flags |= LEADLINE_REGION_FLAG_DATA_WAIT;
        return region(LEADLINE_REGION_PHASE, LEADLINE_BEGIN, name, detail ? detail->c_str() : nullptr, 0, flags);
      },
      nb::arg("name"), nb::kw_only(), nb::arg("detail") = nb::none(), nb::arg("outermost") = false,
      nb::arg("ends_step") = false, nb::arg("data_wait") = false);
  m.def(
      "phase_end", [](uintptr_t token) { region(LEADLINE_REGION_PHASE, LEADLINE_END, "", nullptr, token); },
      nb::arg("token") = 0);
  m.def(
      "waited", [](int64_t ns) { leadline_monitor_measure(static_cast<uint32_t>(MetricKind::kWaitTime), ns, 0); },
      nb::arg("ns"));
  m.def("optimizer_follows", [] { optimizer_follows = true; });
  m.def("step", &step, nb::arg("n") = -1);
  m.def(
      "step_begin", [](int64_t n) { Session::instance().begin_step(n); }, nb::arg("n"));
  m.def("trace_take_back", [] { Session::instance().take_back_trace(); });
  m.def("trace_start", [] { Session::instance().open_trace(); });
  m.def("trace_is_open", [] { return Session::instance().trace_is_open(); });
  m.def("trace_stop", [] { Session::instance().close_trace(); });
  m.def(
      "trace_steps", [](int64_t wait, int64_t count) { Session::instance().trace_steps(wait, count); }, nb::arg("wait"),
      nb::arg("count"));
  m.def(
      "announce_window", [](const std::string& path) { Session::instance().announce_window(path); }, nb::arg("path"));
  m.def(
      "share_window",
      [](const std::string& path, const std::string& parent_path) {
        return Session::instance().share_window(path, parent_path);
      },
      nb::arg("path"), nb::arg("parent_path"));
  m.def("callpath", &callpath, nb::arg("sources") = static_cast<uint32_t>(LEADLINE_SOURCE_ALL));
  m.def("count_loss", &count_loss, nb::arg("kind"), nb::arg("count"), nb::arg("detail"));
  m.def("set_process_info", &set_process_info);
  m.def("module_register", &module_register);
  m.def("module_name", [](uintptr_t id) { return Monitor::instance().modules().qualified(id).name; });
  m.def("module_forget", [](uintptr_t id) { Monitor::instance().modules().forget(id); });
  m.def("module_forget_all", [] { Monitor::instance().modules().clear(); });
  m.def(
      "before_fork", [] { Session::instance().before_fork(); }, nb::call_guard<nb::gil_scoped_release>());
  m.def(
      "before_exec", [] { Session::instance().before_exec(); }, nb::call_guard<nb::gil_scoped_release>());
  m.def(
      "exec_failed", [] { Session::instance().exec_failed(); }, nb::call_guard<nb::gil_scoped_release>());
  m.def("after_fork_in_parent", &after_fork_in_parent);
  m.def("when_fork_is_over", [](const nb::object& call) {
    Py_XDECREF(g_fork_is_over);
    g_fork_is_over = call.inc_ref().ptr();
  });
  m.def("after_fork", [](const std::string& segment_path) {
    gpu::kernel_sources().after_fork();
    Session::instance().after_fork(segment_path);
  });
  m.def("now_ns", &now_ns);
  bindings::define_providers(m);
  bindings::define_booking(m);
  bindings::define_jax_runs(m);
  bindings::define_objects(m);
  bindings::define_layout(m);
  bindings::define_unwind(m);
  bindings::define_torch(m);
  bindings::define_gpu(m);
  bindings::define_nvidia(m);
  bindings::define_amd(m);
  bindings::define_sanitizer(m);
  bindings::define_tools(m);
}
