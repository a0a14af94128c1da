#include "providers/nvidia/nvtx.h"

#include <pthread.h>

#include <atomic>
#include <mutex>

#include "gpu/measure.h"
#include "providers/nvidia/nvtx_names.h"
#include "providers/nvidia/nvtx_ranges.h"
#include "providers/nvidia/nvtx_text.h"

namespace leadline::nvidia {
namespace {

using nvtx::EventAttributes;

std::atomic<std::uint32_t> initialised{0};
std::atomic<std::uint64_t> marks{0};

NvtxDomain& global() noexcept { return NvtxNames::instance().global(); }
NvtxDomain& domain_of(void* handle) noexcept { return handle ? *static_cast<NvtxDomain*>(handle) : global(); }

// A range's name as the program gave it, valid for as long as the attributes are and this lives.
class Message {
 public:
  explicit Message(const EventAttributes* a) noexcept {
    if (!a) return;
    if (a->message_type == nvtx::MessageType::kAscii) text_ = a->message.ascii;
    if (a->message_type == nvtx::MessageType::kRegistered) text_ = static_cast<const char*>(a->message.registered);
    if (a->message_type == nvtx::MessageType::kUnicode) set(a->message.unicode);
  }
  explicit Message(const wchar_t* text) noexcept { set(text); }
  operator const char*() const noexcept { return text_; }

 private:
  void set(const wchar_t* text) noexcept {
    append_utf8(&buffer_, text);
    text_ = buffer_.c_str();
  }
  RangeName buffer_;
  const char* text_ = nullptr;
};

// For calls that name something, which are rare and may allocate.
template <class Name>
auto contained(const Name& name) noexcept -> decltype(name()) {
  try {
    return name();
  } catch (...) {
    gpu::count_loss(LossKind::kInternalError, 1, "No memory to keep a name given to NVTX.");
    return decltype(name())();
  }
}

const char* text_of(const char* text) noexcept { return text ? text : ""; }
void* create(const char* name) noexcept {
  return contained([&] { return NvtxNames::instance().create_domain(name); });
}
const void* keep(const NvtxDomain& domain, const char* text) noexcept {
  // XLA registers the source and the stack of every operation beside its title: tens of megabytes of a large program.
  if (domain.of_xla && domain.skipped.load(std::memory_order_relaxed) && !is_title(text)) return "";
  return contained([&] { return NvtxNames::instance().register_string(text); });
}
void name_category(NvtxDomain& domain, std::uint32_t id, const char* name) noexcept {
  contained([&] { NvtxNames::instance().name_category(domain, id, name); });
}
void count_mark() noexcept { marks.fetch_add(1, std::memory_order_relaxed); }

// The functions NVTX calls, with NVTX's own signatures. The program's frames around them are C.
namespace entry {
void mark_ex(const EventAttributes*) noexcept { count_mark(); }
void mark_a(const char*) noexcept { count_mark(); }
void mark_w(const wchar_t*) noexcept { count_mark(); }
std::uint64_t start_ex(const EventAttributes* a) noexcept { return range_start(global(), Message(a), a); }
std::uint64_t start_a(const char* text) noexcept { return range_start(global(), text, nullptr); }
std::uint64_t start_w(const wchar_t* text) noexcept { return range_start(global(), Message(text), nullptr); }
void end(std::uint64_t id) noexcept { range_end(id); }
int push_ex(const EventAttributes* a) noexcept { return range_push(global(), Message(a), a); }
int push_a(const char* text) noexcept { return range_push(global(), text, nullptr); }
int push_w(const wchar_t* text) noexcept { return range_push(global(), Message(text), nullptr); }
int pop() noexcept { return range_pop(global()); }
void category_a(std::uint32_t id, const char* name) noexcept { name_category(global(), id, text_of(name)); }
void category_w(std::uint32_t id, const wchar_t* name) noexcept { name_category(global(), id, Message(name)); }

void domain_mark_ex(void*, const EventAttributes*) noexcept { count_mark(); }
std::uint64_t domain_start_ex(void* d, const EventAttributes* a) noexcept {
  return range_start(domain_of(d), Message(a), a);
}
void domain_end(void*, std::uint64_t id) noexcept { range_end(id); }
int domain_push_ex(void* d, const EventAttributes* a) noexcept { return range_push(domain_of(d), Message(a), a); }
int domain_pop(void* d) noexcept { return range_pop(domain_of(d)); }
void domain_category_a(void* d, std::uint32_t id, const char* name) noexcept {
  name_category(domain_of(d), id, text_of(name));
}
void domain_category_w(void* d, std::uint32_t id, const wchar_t* name) noexcept {
  name_category(domain_of(d), id, Message(name));
}
const void* register_a(void* d, const char* text) noexcept { return keep(domain_of(d), text_of(text)); }
const void* register_w(void* d, const wchar_t* text) noexcept { return keep(domain_of(d), Message(text)); }
void* create_a(const char* name) noexcept { return create(text_of(name)); }
void* create_w(const wchar_t* name) noexcept { return create(Message(name)); }
void destroy(void*) noexcept {}  // ranges may still name it
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
  set(slots, count, id::kRangeEnd, entry::end);
  set(slots, count, id::kRangePushEx, entry::push_ex);
  set(slots, count, id::kRangePushA, entry::push_a);
  set(slots, count, id::kRangePushW, entry::push_w);
  set(slots, count, id::kRangePop, entry::pop);
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

void nvtx_start(const std::vector<std::string>& skipped_domains, const std::vector<std::string>& left_alone) {
  NvtxNames::instance().skip(skipped_domains, left_alone);
  nvtx_active.store(true, std::memory_order_release);
}

void nvtx_stop() { nvtx_active.store(false, std::memory_order_release); }

NvtxStatus nvtx_status() {
  NvtxStatus status{initialised.load(), marks.load(), global().ranges.load(), {}};
  NvtxNames::instance().for_each_domain([&](const NvtxDomain& domain) {
    status.domains.push_back({domain.name(), domain.ranges.load(), domain.skipped.load(), domain.titled.load()});
  });
  return status;
}

}  // namespace leadline::nvidia

extern "C" int leadline_nvtx_initialize(leadline::nvidia::nvtx::GetExportTable get_export_table) try {
  using namespace leadline::nvidia;
  if (!get_export_table) return 0;
  NvtxNames::instance();  // made here, not in the first range
  static std::once_flag at_fork;
  std::call_once(at_fork, [] { pthread_atfork(nullptr, nullptr, ranges_after_fork); });
  const auto* callbacks = static_cast<const nvtx::CallbacksTable*>(get_export_table(nvtx::kCallbacksTable));
  if (!callbacks || callbacks->struct_size < sizeof(nvtx::CallbacksTable) || !callbacks->get_module_functions) return 0;
  nvtx::FunctionSlot* slots = nullptr;
  unsigned count = 0;
  if (callbacks->get_module_functions(nvtx::Module::kCore, &slots, &count)) fill_core(slots, count);
  if (callbacks->get_module_functions(nvtx::Module::kCore2, &slots, &count)) fill_core2(slots, count);
  initialised.fetch_add(1);
  return 1;
} catch (...) {
  return 0;
}
