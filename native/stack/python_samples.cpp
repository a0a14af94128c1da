#include "stack/python_samples.h"

#include <Python.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <atomic>
#include <cstddef>
#include <cstring>

#include "stack/path_frames.h"
#include "stack/python_frames.h"
#include "stack/python_layout.h"
#include "stack/python_objects.h"
#include "stack/python_threads.h"

namespace leadline {
namespace {

FrameLayout g_layout;                  // set once by begin()
const PythonSource* g_live = nullptr;  // the same
PythonSource g_source;                 // the same
std::span<const RawFrame> g_frames;    // of the sample that is shown, leaf first
std::span<const SampledSelf> g_selves;
std::atomic<uintptr_t> g_dying{0};  // nobody holds it any more, but it is whole; the GIL lets one die at a time
std::atomic<void (*)()> g_before_code_dies{nullptr};
destructor g_free_code = nullptr;

intptr_t g_distance_of_mark = 0;  // see Capture; set once by begin()

const auto kCodeType = reinterpret_cast<uintptr_t>(&PyCode_Type);

// Reads one frame of the chain; false where it cannot be read.
bool read_frame(SafePages& memory, uintptr_t frame, RawFrame* raw, uintptr_t* previous, bool* is_mark,
                bool* is_entry) noexcept {
  uint8_t owner = 0;
  uint8_t entry = 0;
  if (!memory.read(frame + g_layout.previous, previous)) return false;
  if (g_layout.owner >= 0 && !memory.read(frame + static_cast<uint32_t>(g_layout.owner), &owner)) return false;
  *is_mark = g_layout.owner >= 0 && owner == g_layout.shim_owner;
  if (*is_mark) return true;
  if (g_layout.entry >= 0 && !memory.read(frame + static_cast<uint32_t>(g_layout.entry), &entry)) return false;
  *is_entry = g_layout.owner < 0 && (g_layout.entry < 0 || entry != 0);
  raw->frame = frame;
  if (!memory.read(frame + g_layout.code, &raw->code)) return false;
  raw->code &= g_layout.code_mask;
  if (!g_layout.instruction_is_index) return memory.read(frame + g_layout.instruction, &raw->instruction);
  int index = 0;
  if (!memory.read(frame + g_layout.instruction, &index)) return false;
  raw->instruction = static_cast<uintptr_t>(static_cast<intptr_t>(index));
  return true;
}

// Finds a chain that goes in a circle, in which some step meets again where an earlier one stood (Brent).
class Circle {
 public:
  bool closes_at(uintptr_t place) noexcept {
    if (place == kept_) return true;
    if (++steps_ == next_) {
      kept_ = place;
      next_ *= 2;
    }
    return false;
  }

 private:
  uintptr_t kept_ = 0;
  size_t steps_ = 0;
  size_t next_ = 64;
};

class Capture {
 public:
  Capture(SafePages& memory, SampledStack& out) noexcept : memory_(memory), out_(out) {}

  void run(uintptr_t thread) noexcept {
    uintptr_t innermost = 0;
    if (!memory_.read(thread + g_layout.thread_frame, &innermost)) return;
    if (!g_layout.through_cframe) {
      if (g_layout.cframe >= 0 && !memory_.read(thread + static_cast<uint32_t>(g_layout.cframe), &c_frame_)) return;
      if (g_layout.cframe >= 0 && walk_as_many(innermost, thread + g_layout.root_cframe)) return;
      if (!walk(innermost, nullptr)) cut();
      return;
    }
    // CPython 3.11 and 3.12 make the C frame of an evaluation the innermost one before they write into it: until then
    // it holds what an earlier evaluation left at this place of the stack, and the thread is still in the outer one.
    for (int tries = 0; tries < 2 && innermost != 0; ++tries) {
      Evaluation entered{.c_frame = innermost};
      uintptr_t frame = 0;
      uintptr_t outer = 0;
      const bool known = memory_.read(innermost + g_layout.cframe_frame, &frame) &&
                         memory_.read(innermost + g_layout.cframe_previous, &outer) &&
                         (outer == 0 || memory_.read(outer + g_layout.cframe_frame, &entered.goes_on));
      if (g_layout.cframe >= 0) c_frame_ = innermost;
      if (known && walk(frame, &entered)) return;
      out_.clear();
      in_run_ = 0;
      innermost = outer;
    }
    cut();
  }

  // On a thread that runs Python: how far the mark of an evaluation lies from its C frame, both on the stack of one
  // function of the interpreter; 0 where that cannot be told.
  intptr_t distance_of_mark(uintptr_t thread) noexcept {
    uintptr_t c_frame = 0;
    uintptr_t frame = 0;
    if (!memory_.read(thread + g_layout.thread_frame, &c_frame) ||
        !memory_.read(c_frame + g_layout.cframe_frame, &frame)) {
      return 0;
    }
    Circle circle;
    while (frame != 0 && !circle.closes_at(frame)) {
      RawFrame raw;
      uintptr_t previous = 0;
      bool is_mark = false;
      bool is_entry = false;
      if (!read_frame(memory_, frame, &raw, &previous, &is_mark, &is_entry)) return 0;
      if (is_mark) return static_cast<intptr_t>(frame - c_frame);
      frame = previous;
    }
    return 0;
  }

 private:
  struct Evaluation {
    uintptr_t c_frame = 0;
    uintptr_t goes_on = 0;  // the frame in which the evaluation around it stands
  };

  // CPython 3.10 has two chains, of frames and of their C frames. An evaluation links its C frame just before its
  // frame, and takes that back just before it: between, one chain is a link longer, and taken in pairs each Python
  // function would stand where the one that called it is. `root` ends the C frames. False where they fit in no way.
  bool walk_as_many(uintptr_t innermost, uintptr_t root) noexcept {
    const uintptr_t c_innermost = c_frame_;
    uintptr_t c_outer = 0;
    uintptr_t outer = 0;
    memory_.read(c_innermost + g_layout.cframe_previous, &c_outer);
    if (innermost != 0) memory_.read(innermost + g_layout.previous, &outer);
    const uintptr_t ways[][2] = {{innermost, c_innermost}, {innermost, c_outer}, {outer, c_innermost}};
    for (const auto& [frame, c_frame] : ways) {
      c_frame_ = c_frame;
      if (walk(frame, nullptr) && (c_frame_ == root || is_full())) return true;
      out_.clear();
      in_run_ = 0;
    }
    c_frame_ = c_innermost;
    return false;
  }
  // False where the frames do not hang together; `entered`: the evaluation that they begin in, if it can be told.
  bool walk(uintptr_t frame, const Evaluation* entered) noexcept {
    bool innermost = true;
    Circle circle;
    while (frame != 0) {
      RawFrame raw;
      uintptr_t previous = 0;
      bool is_mark = false;
      bool is_entry = false;
      if (circle.closes_at(frame) || !read_frame(memory_, frame, &raw, &previous, &is_mark, &is_entry)) return false;
      if (entered != nullptr && (is_mark || is_entry)) {
        const auto place = entered->c_frame + static_cast<uintptr_t>(g_distance_of_mark);
        // Nothing goes on around the first evaluation of a greenlet, whatever its C frame follows.
        if ((previous != 0 && previous != entered->goes_on) || (is_mark && g_distance_of_mark != 0 && frame != place))
          return false;
        entered = nullptr;
      }
      if (is_mark) {
        end_run(frame);
      } else if (raw.code != g_layout.init_cleanup) {
        // A frame that returns stays the innermost one for a moment after it has let go of its code.
        ObjectHead head{};
        if (!innermost || (memory_.read(raw.code, &head) && lives(head, kCodeType))) add(raw);
        innermost = false;
        if (is_full()) return true;
        if (is_entry) end_run(c_frame_);
        if (is_entry && c_frame_ != 0 && !memory_.read(c_frame_ + g_layout.cframe_previous, &c_frame_)) c_frame_ = 0;
      }
      frame = previous;
    }
    return entered == nullptr || entered->goes_on == 0;
  }
  // Nobody looks at what lies outside of that, however deep it goes.
  bool is_full() const noexcept { return out_.frame_count > out_.frames.size(); }
  // What is known is no path.
  void cut() noexcept {
    out_.clear();
    out_.cut = true;
  }
  void add(const RawFrame& raw) noexcept {
    if (out_.frame_count < out_.frames.size()) {
      out_.frames[out_.frame_count] = raw;
      ++in_run_;
    }
    ++out_.frame_count;
    if (out_.self_count == out_.selves.size() || !PathFrames::is_module_call(raw.code)) return;
    uintptr_t self = 0;
    ObjectHead head{};
    if (!memory_.read(raw.frame + g_layout.locals, &self)) return;
    self &= g_layout.code_mask;
    if (self != 0 && memory_.read(self, &head)) out_.selves[out_.self_count++] = {raw.frame, self, head.type};
  }
  void end_run(uintptr_t home) noexcept {
    if (out_.run_count < out_.runs.size() && in_run_ != 0) out_.runs[out_.run_count++] = {home, in_run_};
    in_run_ = 0;
  }

  SafePages& memory_;
  SampledStack& out_;
  uintptr_t c_frame_ = 0;
  uint64_t in_run_ = 0;
};

void capture(SafePages& memory, SampledStack& out) {
  out.clear();
  const auto thread = reinterpret_cast<uintptr_t>(PyGILState_GetThisThreadState());
  if (thread != 0) Capture(memory, out).run(thread);
}

// ---------------------------------------------------------------- other threads

void capture_of(SafePages& memory, pid_t tid, SampledStack& out) {
  out.clear();
  const uintptr_t state = python_state_of(memory, tid);
  if (state != 0) Capture(memory, out).run(state);
}

bool is_own_lock(uintptr_t address) {
  struct Runtime {
    uintptr_t begin = 0;
    uintptr_t end = 0;
  };
  static const Runtime runtime = [] {
    Runtime found;
    void* const symbol = dlsym(RTLD_DEFAULT, "_PyRuntime");
    Dl_info info;
    const ElfW(Sym)* about = nullptr;
    if (symbol == nullptr) return found;
    found.begin = reinterpret_cast<uintptr_t>(symbol);
    const bool known =
        dladdr1(symbol, &info, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&about)), RTLD_DL_SYMENT);
    found.end = found.begin + (known && about != nullptr ? about->st_size : 0);
    return found;
  }();
  return address >= runtime.begin && address < runtime.end;
}

bool is_code(uintptr_t code) {
  if (code != 0 && code == g_dying.load(std::memory_order_acquire)) return true;
  ObjectHead head{};
  return code % sizeof(void*) == 0 && read_safely(code, &head, sizeof head) && lives(head, kCodeType);
}

void free_code(PyObject* code) {
  if (void (*const call)() = g_before_code_dies.load(std::memory_order_acquire); call != nullptr) {
    g_dying.store(reinterpret_cast<uintptr_t>(code), std::memory_order_release);
    call();
    g_dying.store(0, std::memory_order_release);
  }
  g_free_code(code);
}

void before_code_dies(void (*call)()) { g_before_code_dies.store(call, std::memory_order_release); }

// ---------------------------------------------------------------- the frames of a sample as a source

uintptr_t top() { return g_frames.empty() ? 0 : g_frames.front().frame; }

size_t walk(uintptr_t top, RawFrame* out, size_t room, uintptr_t stop, bool* found) {
  *found = stop == 0;
  size_t at = 0;
  while (at < g_frames.size() && g_frames[at].frame != top) ++at;
  size_t count = 0;
  for (; at < g_frames.size(); ++at) {
    if (count < room) out[count] = g_frames[at];
    ++count;
    if (g_frames[at].frame == stop) {
      *found = true;
      break;
    }
  }
  return count;
}

size_t matching(uintptr_t, const ShownFrame*, size_t, size_t, uintptr_t, bool) { return kNotAligned; }

uintptr_t first_local(uintptr_t frame, uintptr_t) {
  for (const SampledSelf& self : g_selves) {
    if (self.frame == frame) return self.object;
  }
  return 0;
}

uintptr_t fingerprint(uintptr_t code) { return g_live->fingerprint(code); }
void describe(const RawFrame& raw, FrameText* out) { g_live->describe(raw, out); }
bool suspends(uintptr_t code) { return g_live->suspends(code); }

// At the time of the sample.
uintptr_t type_of(uintptr_t object) {
  for (const SampledSelf& self : g_selves) {
    if (self.object == object) return self.type;
  }
  ObjectHead head{};
  return read_safely(object, &head, sizeof head) ? head.type : 0;
}

bool has_died(uintptr_t object) {
  ObjectHead head{};
  return !read_safely(object, &head, sizeof head) || !lives(head, type_of(object));
}

void describe_object(uintptr_t object, std::string* class_name) {
  class_name->clear();
  const uintptr_t type = type_of(object);
  uintptr_t name = 0;
  if (!is_class(type) || !read_safely(type + offsetof(PyTypeObject, tp_name), &name, sizeof name)) return;
  for (char letter = 0; class_name->size() < 256; ++name) {
    if (!read_safely(name, &letter, 1) || letter == 0) break;
    if (static_cast<unsigned char>(letter) < ' ') return class_name->clear();  // no name: the object has gone
    if (letter == '.') {
      class_name->clear();
    } else {
      class_name->push_back(letter);
    }
  }
}

bool local_name_of(uintptr_t, uintptr_t, std::string*) { return false; }
bool entered_from_c(uintptr_t) { return false; }

void show(std::span<const RawFrame> frames, std::span<const SampledSelf> selves) {
  g_frames = frames;
  g_selves = selves;
}

bool begin(const PythonSource& live) {
  if (g_live != nullptr) return true;
  g_layout = python_layout();
  g_live = &live;
  if (const auto thread = reinterpret_cast<uintptr_t>(PyGILState_GetThisThreadState());
      g_layout.through_cframe && thread != 0) {
    static SafePages memory;
    SampledStack nothing;
    g_distance_of_mark = Capture(memory, nothing).distance_of_mark(thread);
  }
  g_source = {
      .top = top,
      .walk = walk,
      .matching = matching,
      .first_local = first_local,
      .fingerprint = fingerprint,
      .codes_freed = live.codes_freed,
      .describe = describe,
      .describe_object = describe_object,
      .local_name_of = local_name_of,
      .type_of = type_of,
      .has_died = has_died,
      .suspends = suspends,
      .entered_from_c = entered_from_c,
  };
  // As for the count of codes that died: never taken out again, for another may have been put before it since.
  g_free_code = PyCode_Type.tp_dealloc;
  PyCode_Type.tp_dealloc = free_code;
  return true;
}

}  // namespace

const PythonSamples kPythonSamples = {
    .begin = begin,
    .capture = capture,
    .capture_of = capture_of,
    .is_own_lock = is_own_lock,
    .is_code = is_code,
    .before_code_dies = before_code_dies,
    .source = &g_source,
    .show = show,
};

}  // namespace leadline
