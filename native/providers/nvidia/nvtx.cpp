#include "providers/nvidia/nvtx.h"

#include <strings.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>

#include "base/ids.h"
#include "providers/nvidia/nvtx_text.h"

namespace leadline::nvidia {
namespace {

using nvtx::EventAttributes;

struct Domain {
  std::string name;
  std::atomic<bool> skipped{false};
  std::atomic<std::uint64_t> ranges{0};
  std::map<std::uint32_t, std::string> categories;                       // guarded by State::mutex
  std::map<std::string, std::set<std::uint64_t>, std::less<>> payloads;  // per range name, guarded by State::mutex
};

struct OpenRange {
  std::uint64_t owner = 0;  // number of the thread that began it
  const void* token = nullptr;
};

// Programs hold pointers into this for as long as they live, so it is never taken down.
struct State {
  std::mutex mutex;
  std::atomic<bool> active{false};
  std::atomic<std::uint32_t> initialised{0};
  std::atomic<std::uint64_t> marks{0};
  std::atomic<std::uint64_t> next_token{1};
  std::atomic<std::uint64_t> next_thread{1};
  std::vector<std::string> skipped;
  Domain global;
  std::vector<std::unique_ptr<Domain>> domains;
  std::map<std::string, std::unique_ptr<std::string>> strings;           // address of the value is the handle
  std::unordered_map<std::uint64_t, OpenRange> open;                     // start/end ranges
  std::unordered_map<std::uint64_t, std::vector<const void*>> to_close;  // by owner: ended by another thread
};

State& state() {
  static State& made = *new State;
  return made;
}

constexpr std::size_t kMostPayloads = 32;  // per range name; more would make a call path each
constexpr std::size_t kMostOpen = 1u << 16;

// A range the thread has open, pushed or started. Regions nest, so one that ends inside another stays until that one
// ends.
struct Pushed {
  const Domain* domain;
  const void* token;  // nullptr: not shown
  bool started;       // by start, so no pop ends it
  bool ended;
};

struct ThreadRanges {
  std::uint64_t number = state().next_thread.fetch_add(1);
  std::vector<Pushed> pushed;
};
thread_local ThreadRanges mine;

Domain& domain_of(void* handle) { return handle ? *static_cast<Domain*>(handle) : state().global; }

void emit(leadline_phase phase, const char* name, const char* detail, const void* token) {
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_REGION;
  event.phase = phase;
  event.time_ns = leadline_monitor_now();
  event.token = token;
  event.of.region.name = name;
  event.of.region.detail = detail;
  event.of.region.kind = LEADLINE_REGION_USER;
  leadline_monitor_emit(&event);
}

void count_unordered() {
  leadline_monitor_loss(
      static_cast<std::uint32_t>(LossKind::kRangeUnordered), 1,
      "An NVTX range did not end inside the range around it, or not on its thread; its time runs until the "
      "ranges in it have ended.");
}

using Open = std::vector<Pushed>::iterator;
void end_range(Open range) {
  if (range->token &&
      std::any_of(std::next(range), mine.pushed.end(), [](const Pushed& p) { return p.token != nullptr; })) {
    range->ended = true;
    count_unordered();
    return;
  }
  if (range->token) emit(LEADLINE_END, "", nullptr, range->token);
  mine.pushed.erase(range);
  while (!mine.pushed.empty() && mine.pushed.back().ended) {
    emit(LEADLINE_END, "", nullptr, mine.pushed.back().token);
    mine.pushed.pop_back();
  }
}

Open find_open(const void* token) {
  return std::find_if(mine.pushed.begin(), mine.pushed.end(),
                      [&](const Pushed& p) { return p.token == token && !p.ended; });
}

// Ranges of this thread that another thread has ended.
void close_pending() {
  State& s = state();
  std::vector<const void*> tokens;
  {
    const std::lock_guard lock(s.mutex);
    const auto found = s.to_close.find(mine.number);
    if (found == s.to_close.end()) return;
    tokens = std::move(found->second);
    s.to_close.erase(found);
  }
  for (const void* token : tokens) {
    if (const Open range = find_open(token); range != mine.pushed.end()) end_range(range);
  }
}

std::string message_of(const EventAttributes& a) {
  switch (a.message_type) {
    case nvtx::MessageType::kAscii:
      return a.message.ascii ? a.message.ascii : "";
    case nvtx::MessageType::kUnicode:
      return utf8_of(a.message.unicode);
    case nvtx::MessageType::kRegistered:
      return a.message.registered ? *static_cast<const std::string*>(a.message.registered) : "";
    default:
      return "";
  }
}

// nullptr when nothing is shown for it.
const void* begin(Domain& domain, const std::string& name, const EventAttributes* attributes) try {
  State& s = state();
  domain.ranges.fetch_add(1, std::memory_order_relaxed);
  if (!s.active.load(std::memory_order_acquire) || domain.skipped.load(std::memory_order_relaxed)) return nullptr;
  close_pending();
  std::string category;
  bool varies = false;
  if (attributes && (attributes->category != 0 || attributes->payload_type != nvtx::PayloadType::kNone)) {
    const std::lock_guard lock(s.mutex);
    if (const auto found = domain.categories.find(attributes->category); found != domain.categories.end()) {
      category = found->second;
    }
    if (attributes->payload_type != nvtx::PayloadType::kNone) {
      std::set<std::uint64_t>& seen = domain.payloads[name];
      if (seen.size() < kMostPayloads) seen.insert(attributes->payload.u64);
      varies = !seen.contains(attributes->payload.u64);
    }
  }
  const std::string detail =
      nvtx_detail(domain.name, category, attributes ? attributes->category : 0, attributes, varies);
  // Odd, so that it is never the address a framework uses as its own token.
  const auto* token = reinterpret_cast<const void*>(s.next_token.fetch_add(1, std::memory_order_relaxed) << 1 | 1);
  emit(LEADLINE_BEGIN, name.empty() ? "(unnamed range)" : name.c_str(), detail.empty() ? nullptr : detail.c_str(),
       token);
  return token;
} catch (...) {
  leadline_monitor_loss(static_cast<std::uint32_t>(LossKind::kInternalError), 1, "No memory to keep an NVTX range.");
  return nullptr;
}

int level(const Domain& domain) {
  return static_cast<int>(std::count_if(mine.pushed.begin(), mine.pushed.end(), [&](const Pushed& p) {
    return p.domain == &domain && !p.started && !p.ended;
  }));
}

int push(Domain& domain, const std::string& name, const EventAttributes* attributes) {
  mine.pushed.push_back({&domain, begin(domain, name, attributes), false, false});
  return level(domain) - 1;
}

int pop(Domain& domain) {
  for (auto range = mine.pushed.rbegin(); range != mine.pushed.rend(); ++range) {
    if (range->domain != &domain || range->started || range->ended) continue;
    end_range(std::next(range).base());
    close_pending();
    return level(domain);
  }
  return -1;  // a pop without its push; -2 would mean that no tool tracks
}

std::uint64_t start(Domain& domain, const std::string& name, const EventAttributes* attributes) {
  const void* token = begin(domain, name, attributes);
  if (!token) return 0;
  State& s = state();
  const auto id = reinterpret_cast<std::uintptr_t>(token);
  mine.pushed.push_back({&domain, token, true, false});
  const std::lock_guard lock(s.mutex);
  if (s.open.size() < kMostOpen) s.open[id] = {mine.number, token};
  return id;
}

void end(std::uint64_t id) {
  State& s = state();
  OpenRange range;
  {
    const std::lock_guard lock(s.mutex);
    const auto found = s.open.find(id);
    if (found == s.open.end()) return;
    range = found->second;
    s.open.erase(found);
    if (range.owner != mine.number) s.to_close[range.owner].push_back(range.token);
  }
  if (range.owner != mine.number) {
    count_unordered();
  } else if (const Open open = find_open(range.token); open != mine.pushed.end()) {
    end_range(open);
  }
}

Domain* create_domain(std::string name) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  auto domain = std::make_unique<Domain>();
  domain->name = std::move(name);
  domain->skipped = std::any_of(s.skipped.begin(), s.skipped.end(), [&](const std::string& skip) {
    return strcasecmp(skip.c_str(), domain->name.c_str()) == 0;
  });
  s.domains.push_back(std::move(domain));
  return s.domains.back().get();
}

const void* register_string(std::string text) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  std::unique_ptr<std::string>& kept = s.strings[text];
  if (!kept) kept = std::make_unique<std::string>(std::move(text));
  return kept.get();
}

void name_category(Domain& domain, std::uint32_t category, std::string name) {
  const std::lock_guard lock(state().mutex);
  domain.categories[category] = std::move(name);
}

std::string text_of(const char* text) { return text ? text : ""; }
std::string message_or_empty(const EventAttributes* a) { return a ? message_of(*a) : std::string(); }
void count_mark() { state().marks.fetch_add(1, std::memory_order_relaxed); }

// The functions NVTX calls, with NVTX's own signatures.
namespace entry {
void mark_ex(const EventAttributes*) { count_mark(); }
void mark_a(const char*) { count_mark(); }
void mark_w(const wchar_t*) { count_mark(); }
std::uint64_t start_ex(const EventAttributes* a) { return start(state().global, message_or_empty(a), a); }
std::uint64_t start_a(const char* text) { return start(state().global, text_of(text), nullptr); }
std::uint64_t start_w(const wchar_t* text) { return start(state().global, utf8_of(text), nullptr); }
void range_end(std::uint64_t id) { end(id); }
int push_ex(const EventAttributes* a) { return push(state().global, message_or_empty(a), a); }
int push_a(const char* text) { return push(state().global, text_of(text), nullptr); }
int push_w(const wchar_t* text) { return push(state().global, utf8_of(text), nullptr); }
int range_pop() { return pop(state().global); }
void category_a(std::uint32_t id, const char* name) { name_category(state().global, id, text_of(name)); }
void category_w(std::uint32_t id, const wchar_t* name) { name_category(state().global, id, utf8_of(name)); }

void domain_mark_ex(void*, const EventAttributes*) { count_mark(); }
std::uint64_t domain_start_ex(void* d, const EventAttributes* a) { return start(domain_of(d), message_or_empty(a), a); }
void domain_end(void*, std::uint64_t id) { end(id); }
int domain_push_ex(void* d, const EventAttributes* a) { return push(domain_of(d), message_or_empty(a), a); }
int domain_pop(void* d) { return pop(domain_of(d)); }
void domain_category_a(void* d, std::uint32_t id, const char* name) { name_category(domain_of(d), id, text_of(name)); }
void domain_category_w(void* d, std::uint32_t id, const wchar_t* name) {
  name_category(domain_of(d), id, utf8_of(name));
}
const void* register_a(void*, const char* text) { return register_string(text_of(text)); }
const void* register_w(void*, const wchar_t* text) { return register_string(utf8_of(text)); }
void* create_a(const char* name) { return create_domain(text_of(name)); }
void* create_w(const wchar_t* name) { return create_domain(utf8_of(name)); }
void destroy(void*) {}  // ranges may still name it
}  // namespace entry

template <class Function>
void set(nvtx::FunctionSlot* slots, unsigned count, unsigned id, Function* function) {
  if (slots && id < count && slots[id]) *slots[id] = reinterpret_cast<void (*)()>(function);
}

void fill_core(nvtx::FunctionSlot* slots, unsigned count) {
  namespace id = nvtx::core;
  set(slots, count, id::kMarkEx, entry::mark_ex);
  set(slots, count, id::kMarkA, entry::mark_a);
  set(slots, count, id::kMarkW, entry::mark_w);
  set(slots, count, id::kRangeStartEx, entry::start_ex);
  set(slots, count, id::kRangeStartA, entry::start_a);
  set(slots, count, id::kRangeStartW, entry::start_w);
  set(slots, count, id::kRangeEnd, entry::range_end);
  set(slots, count, id::kRangePushEx, entry::push_ex);
  set(slots, count, id::kRangePushA, entry::push_a);
  set(slots, count, id::kRangePushW, entry::push_w);
  set(slots, count, id::kRangePop, entry::range_pop);
  set(slots, count, id::kNameCategoryA, entry::category_a);
  set(slots, count, id::kNameCategoryW, entry::category_w);
}

void fill_core2(nvtx::FunctionSlot* slots, unsigned count) {
  namespace id = nvtx::core2;
  set(slots, count, id::kDomainMarkEx, entry::domain_mark_ex);
  set(slots, count, id::kDomainRangeStartEx, entry::domain_start_ex);
  set(slots, count, id::kDomainRangeEnd, entry::domain_end);
  set(slots, count, id::kDomainRangePushEx, entry::domain_push_ex);
  set(slots, count, id::kDomainRangePop, entry::domain_pop);
  set(slots, count, id::kNameCategoryA, entry::domain_category_a);
  set(slots, count, id::kNameCategoryW, entry::domain_category_w);
  set(slots, count, id::kRegisterStringA, entry::register_a);
  set(slots, count, id::kRegisterStringW, entry::register_w);
  set(slots, count, id::kDomainCreateA, entry::create_a);
  set(slots, count, id::kDomainCreateW, entry::create_w);
  set(slots, count, id::kDomainDestroy, entry::destroy);
}

}  // namespace

void nvtx_start(const std::vector<std::string>& skipped_domains) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.skipped = skipped_domains;
  for (const auto& domain : s.domains) {
    domain->skipped = std::any_of(skipped_domains.begin(), skipped_domains.end(), [&](const std::string& skip) {
      return strcasecmp(skip.c_str(), domain->name.c_str()) == 0;
    });
  }
  s.active.store(true, std::memory_order_release);
}

void nvtx_stop() { state().active.store(false, std::memory_order_release); }

std::string nvtx_status_json() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  std::string json = "{\"initialised\": " + std::to_string(s.initialised.load()) +
                     ", \"marks\": " + std::to_string(s.marks.load()) +
                     ", \"ranges\": " + std::to_string(s.global.ranges.load()) + ", \"domains\": {";
  bool first = true;
  for (const auto& domain : s.domains) {
    json += first ? "\"" : ", \"";
    first = false;
    append_escaped(&json, domain->name);
    json += "\": {\"ranges\": " + std::to_string(domain->ranges.load()) +
            ", \"skipped\": " + (domain->skipped.load() ? "true" : "false") + "}";
  }
  return json + "}}";
}

}  // namespace leadline::nvidia

extern "C" int leadline_nvtx_initialize(leadline::nvidia::nvtx::GetExportTable get_export_table) try {
  using namespace leadline::nvidia;
  if (!get_export_table) return 0;
  const auto* callbacks = static_cast<const nvtx::CallbacksTable*>(get_export_table(nvtx::kCallbacksTable));
  if (!callbacks || callbacks->struct_size < sizeof(nvtx::CallbacksTable) || !callbacks->get_module_functions) return 0;
  nvtx::FunctionSlot* slots = nullptr;
  unsigned count = 0;
  if (callbacks->get_module_functions(nvtx::Module::kCore, &slots, &count)) fill_core(slots, count);
  if (callbacks->get_module_functions(nvtx::Module::kCore2, &slots, &count)) fill_core2(slots, count);
  state().initialised.fetch_add(1);
  return 1;
} catch (...) {
  return 0;
}
