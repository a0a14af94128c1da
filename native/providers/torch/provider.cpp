#include "providers/torch/provider.h"

#include <atomic>
#include <cstring>

#include "monitor/monitor.h"
#include "providers/torch/collective_text.h"
#include "providers/torch/coming_node.h"
#include "providers/torch/communication.h"
#include "providers/torch/in_flight.h"
#include "providers/torch/input_text.h"
#include "providers/torch/launch_place.h"
#include "providers/torch/operator_names.h"
#include "providers/torch/scope_names.h"
#include "providers/torch/value_numbers.h"
#include "providers/torch/work_scopes.h"

namespace leadline::torch {
namespace {

constexpr int kProbeRuns = 4;

// Read by callbacks of any thread; written before they are registered. Callbacks may still run once after detach, so
// this lives on. What every operator needs stands in the first line of the cache.
struct alignas(64) Shared {
  std::atomic<bool> running{false};
  // Nothing but name and number is asked of an operator that has a schema.
  bool plain = false;
  bool has_offsets = false;
  bool keeps_names = false;  // see OperatorNames
  bool shapes = false;
  std::atomic<bool> shapes_rest{false};
  Offsets offsets;
  Symbols symbols;
};
Shared g_shared;

template <typename T>
T field(const RecordFunction& function, uint32_t offset) noexcept {
  T value;
  std::memcpy(&value, reinterpret_cast<const char*>(&function) + offset, sizeof value);
  return value;
}

// torch's number of this thread, which it never changes; asked once, since asking goes through two libraries.
uint64_t this_thread() noexcept {
  __attribute__((tls_model("initial-exec"))) static thread_local uint64_t known = 0;
  if (known == 0) [[unlikely]]
    known = g_shared.symbols.current_thread();
  return known;
}

// Without a call into torch where it can be read.
const char* name_of(const RecordFunction& function, bool has_schema) noexcept {
  if (has_schema && g_shared.offsets.schema != 0) [[likely]]
    return *field<const char* const*>(function, g_shared.offsets.schema);
  return g_shared.symbols.name(&function);
}

// For how many calls this one stands that computes what was computed before. Before the operator begins, so that it is
// part of the measured overhead.
template <Scope kScope>
uint32_t number_values(const RecordFunction& function, const leadline_operator_event& op) noexcept {
  if (!ValueNumbers::on()) return 0;
  if (kScope == Scope::kFunction && op.inputs != nullptr)
    return ValueNumbers::begins(g_shared.symbols, function, op.name, op.inputs, g_shared.offsets.inputs);
  ValueNumbers::begins_unknown(function);
  return 0;
}

// Of any kind. With what it needs apart from begin_operator(), which nearly all operators take.
template <Scope kScope>
[[gnu::noinline, gnu::hot]] std::unique_ptr<ObserverContext> begin_other_operator(
    const RecordFunction& function) noexcept {
  leadline_operator_event op{};
  op.sequence = -1;
  op.backward = kScope == Scope::kBackwardFunction ? 1 : 0;
  const bool has_schema = g_shared.has_offsets && field<uint8_t>(function, g_shared.offsets.has_schema) == 1;
  if (has_schema && g_shared.keeps_names) [[likely]] {
    op.stable_name = 1;
    op.name_generation = OperatorNames::generation();
  }
  op.name = name_of(function, has_schema);
  if (g_shared.has_offsets) {
    op.sequence = field<int64_t>(function, g_shared.offsets.sequence);
    if (op.sequence >= 0) {
      op.thread = this_thread();
      if (kScope == Scope::kBackwardFunction)
        op.forward_thread = field<uint64_t>(function, g_shared.offsets.forward_thread);
    }
    if (kScope == Scope::kBackwardFunction) ComingNode::check(op.sequence, op.forward_thread);
  }
  if (kScope == Scope::kFunction && !has_schema && ComingNode::is_announced(op.name)) op.wrapped = ComingNode::identify;
  if (!has_schema && CollectiveText::is_wrapper(op.name)) [[unlikely]] {
    CollectiveText collective;
    FlightRecorder::Where where;
    op.inputs = collective.describe(g_shared.symbols, &where);
    Monitor::instance().begin_operator(op, &function);
    return Communication::open(g_shared.symbols, false, op.inputs != nullptr ? InFlight::describe(where) : 0);
  }
  const bool talks = kScope == Scope::kFunction && communicates(op.name);
  if (g_shared.shapes && !g_shared.shapes_rest.load(std::memory_order_relaxed)) [[unlikely]] {
    InputText inputs;
    op.inputs = inputs.describe(g_shared.symbols, function, talks ? kCommunication : nullptr,
                                g_shared.has_offsets ? g_shared.offsets.inputs : 0);
    op.stable_inputs = inputs.is_kept() ? 1 : 0;
    const uint32_t again = number_values<kScope>(function, op);
    Monitor::instance().begin_operator(op, &function);
    if (again != 0) leadline_monitor_measure(static_cast<uint32_t>(MetricKind::kAgain), again, 0);
  } else {
    if (talks) [[unlikely]]
      op.inputs = kCommunication;
    Monitor::instance().begin_operator(op, &function);
    if (ValueNumbers::on()) [[unlikely]]
      ValueNumbers::begins_unknown(function);
  }
  return talks ? Communication::open(g_shared.symbols, true, InFlight::begin(op.name)) : nullptr;
}

template <Scope kScope>
[[gnu::hot]] std::unique_ptr<ObserverContext> begin_operator(const RecordFunction& function) noexcept {
  Monitor& monitor = Monitor::instance();
  monitor.event_comes();
  if constexpr (kScope == Scope::kFunction) {
    const Offsets& offsets = g_shared.offsets;
    if (g_shared.plain && field<uint8_t>(function, offsets.has_schema) == 1) [[likely]] {
      leadline_operator_event op{};
      op.name = *field<const char* const*>(function, offsets.schema);
      if (!communicates(op.name)) [[likely]] {
        op.stable_name = 1;
        op.name_generation = OperatorNames::generation();
        op.sequence = field<int64_t>(function, offsets.sequence);
        if (op.sequence >= 0) op.thread = this_thread();
        monitor.begin_operator(op, &function);
        return nullptr;
      }
    }
  }
  return begin_other_operator<kScope>(function);
}

void region(const RecordFunction& function, leadline_phase phase) noexcept {
  leadline_event event{};
  event.domain = LEADLINE_DOMAIN_REGION;
  event.phase = phase;
  event.token = &function;
  ScopeName scope;
  if (phase == LEADLINE_BEGIN) {
    read_scope_name(g_shared.symbols.name(&function), &scope);
    event.of.region.name = scope.name;
    event.of.region.detail = scope.detail[0] == '\0' ? nullptr : scope.detail;
    event.of.region.kind = scope.is_phase ? LEADLINE_REGION_PHASE : LEADLINE_REGION_USER;
    event.of.region.flags = scope.flags;
    event.of.region.asked_at = LaunchPlace::read(g_shared.symbols);
    InFlight::work_began(&function);
    WorkScopes::began(&function);
  } else {
    InFlight::work_ended(&function);
    if (!WorkScopes::ended(&function)) return;
  }
  Monitor::instance().emit(event);
}

template <Scope kScope>
[[gnu::hot]] std::unique_ptr<ObserverContext> on_start(const RecordFunction& function) {
  if (g_shared.running.load(std::memory_order_relaxed)) {
    if constexpr (kScope == Scope::kUserScope) {
      region(function, LEADLINE_BEGIN);
    } else {
      return begin_operator<kScope>(function);
    }
  } else {
    Monitor::instance().begun_unheard();
  }
  return nullptr;
}

template <Scope kScope>
[[gnu::hot]] void on_end(const RecordFunction& function, ObserverContext* context) {
  if constexpr (kScope == Scope::kFunction) {
    if (context != nullptr) [[unlikely]]
      static_cast<Communication*>(context)->close();
  }
  if (kScope != Scope::kUserScope && ValueNumbers::on()) [[unlikely]]
    ValueNumbers::ends(function);
  if (!g_shared.running.load(std::memory_order_relaxed) && !Monitor::instance().paused()) return;
  if constexpr (kScope == Scope::kUserScope) {
    region(function, LEADLINE_END);
  } else {
    Monitor::instance().end_operator(&function);
  }
}

template <Scope kScope>
Handle add(const Symbols& symbols, bool shapes) {
  Callback callback;
  callback.start = on_start<kScope>;
  callback.end = on_end<kScope>;
  callback.scopes[static_cast<size_t>(kScope)] = true;
  callback.needs_inputs = shapes && kScope == Scope::kFunction;
  return symbols.add_global_callback(callback);
}

// Runs the operator; whether a callback that was just registered has seen it each time.
bool sees_operator(const Symbols& symbols, const ProviderCall& run_known_operator, std::optional<Offsets>* offsets,
                   std::string* why) {
  Probe probe(symbols);
  QuietGuards::change_nothing();
  bool seen = false;
  for (int i = 0; i < kProbeRuns; ++i) {
    const ProviderStatus ran = run_known_operator();
    seen = probe.observe({status_value(ran, "operator", std::string()), status_value<int64_t>(ran, "sequence", -1)});
  }
  *offsets = probe.conclude(why);
  return seen;
}

TensorLayout layout_from(const ProviderStatus& told) {
  const auto bytes = [&](const char* name) { return static_cast<uint32_t>(status_value<int64_t>(told, name, 0)); };
  return {bytes("tensor_storage"),  bytes("tensor_geometry"), bytes("tensor_counter"), bytes("tensor_type"),
          bytes("counter_version"), bytes("storage_data"),    bytes("storage_bytes"),  bytes("storage_device")};
}

std::unique_ptr<ObserverContext> learn_tags(const RecordFunction& function) {
  InputText inputs;
  ValueNumbers::learn(function, inputs.describe(g_shared.symbols, function, nullptr, 0), g_shared.offsets.inputs);
  return nullptr;
}

void forget(const RecordFunction&, ObserverContext*) {}

// The known operator's tensor is made from a list, which tells the tag of lists.
void number_values_from(const ProviderCall& run_known_operator) {
  Callback callback;
  callback.start = learn_tags;
  callback.end = forget;
  callback.scopes[static_cast<size_t>(Scope::kFunction)] = true;
  callback.needs_inputs = true;
  const Handle handle = g_shared.symbols.add_global_callback(callback);
  const ProviderStatus told = run_known_operator();
  g_shared.symbols.remove_callback(handle);
  const TensorLayout layout = layout_from(told);
  InputText::begin(layout);
  ValueNumbers::begin(layout);
}

void append(std::string* to, const std::string& sentence) {
  if (!to->empty()) to->append("; ");
  to->append(sentence);
}

}  // namespace

Provider& Provider::instance() {
  static auto* const provider = new Provider();  // never destroyed: callbacks may outlive main
  return *provider;
}

ProviderStatus Provider::start(const ProviderOptions& options) {
  if (attached_) stop();
  std::string message;
  status_ = {{"memory", false}, {"sequence", false}, {"shapes", false}};
  status_["ok"] = attach(options, &message);
  status_["message"] = message;
  return status_;
}

bool Provider::attach(const ProviderOptions& options, std::string* message) {
  const ProviderCall run_known_operator = options.get<ProviderCall>("self_test", nullptr);
  std::optional<Symbols> symbols = Symbols::find(message);
  if (!symbols) return false;
  if (run_known_operator == nullptr) {
    append(message, "torch cannot be measured without an operator to test with");
    return false;
  }
  std::string why;
  std::string slower;
  std::optional<Offsets> offsets;
  const bool quiet = guards_.attach(&slower);
  bool operator_seen = sees_operator(*symbols, run_known_operator, &offsets, &why);
  if (quiet && !operator_seen) {
    guards_.detach();
    slower = "this torch calls who listens only where it has built its lists of callbacks anew";
    operator_seen = sees_operator(*symbols, run_known_operator, &offsets, &why);
  }
  status_["slower"] = slower;
  if (!operator_seen) {
    *message = why;
    return false;
  }
  if (!offsets) append(message, why);
  if (symbols->push_debug_info != nullptr && !LaunchPlace::self_test(*symbols)) {
    symbols->push_debug_info = nullptr;
    const char* const sentence =
        "this torch keeps debug information of threads in another way than is known, so collectives on threads of "
        "their own are shown on those threads; please report the torch version";
    leadline_monitor_loss(static_cast<uint32_t>(LossKind::kProviderUnavailable), 1, sentence);
    append(message, sentence);
  }
  for (const uintptr_t function : symbols->observing) Monitor::instance().observing().add(function);
  g_shared.symbols = *symbols;
  ComingNode::set_source(symbols->current_node);
  g_shared.has_offsets = offsets.has_value();
  g_shared.keeps_names = OperatorNames::follow();
  if (offsets) g_shared.offsets = *offsets;
  g_shared.shapes = options.shapes && symbols->input_shapes != nullptr;
  if (options.shapes && !g_shared.shapes) append(message, "this torch does not report the shapes of inputs");
  g_shared.plain = g_shared.has_offsets && g_shared.keeps_names && g_shared.offsets.schema != 0 && !g_shared.shapes;
  if (options.memory) {
    const bool memory = memory_.attach(&why);
    status_["memory"] = memory;
    if (!memory) append(message, why);
    if (memory && g_shared.shapes && offsets) number_values_from(run_known_operator);
  }
  attached_ = true;
  run_or_rest();
  listen(!paused_);
  status_["sequence"] = g_shared.has_offsets;
  status_["shapes"] = g_shared.shapes;
  return true;
}

ProviderStatus Provider::status() const {
  ProviderStatus status = status_;
  const PaddingSums padding = ValueNumbers::padding();
  status["batches_looked_at"] = static_cast<int64_t>(padding.batches);
  status["padding"] = padding.all;
  status["common_padding"] = padding.common;
  return status;
}

void Provider::run_or_rest() noexcept {
  const bool running = attached_ && !paused_;
  g_shared.running.store(running);
  memory_.set_running(attached_);  // what is freed in a pause lives no longer
}

void Provider::listen(bool on) noexcept {
  // Another thread of the parent's may have held torch's lock when it forked, for ever. The callbacks are quiet while
  // nothing runs, and serve again.
  if (forked_ && handles_[0] != 0) return;
  for (Handle& handle : handles_) {
    if (handle != 0) g_shared.symbols.remove_callback(handle);
    handle = 0;
  }
  if (!on) return;
  try {
    handles_[0] = add<Scope::kFunction>(g_shared.symbols, g_shared.shapes);
    handles_[1] = add<Scope::kBackwardFunction>(g_shared.symbols, false);
    handles_[2] = add<Scope::kUserScope>(g_shared.symbols, false);
  } catch (...) {
    leadline_monitor_loss(static_cast<uint32_t>(LossKind::kProviderUnavailable), 1,
                          "torch took no callbacks, so its operators are not measured any more; memory is short");
  }
}

void Provider::rest(bool rests) noexcept { g_shared.shapes_rest.store(rests); }

void Provider::pause() noexcept {
  paused_ = true;
  run_or_rest();
  if (attached_) listen(false);
}

void Provider::resume() noexcept {
  paused_ = false;
  if (attached_ && handles_[0] == 0) listen(true);
  run_or_rest();
}

void Provider::stop() noexcept {
  if (!attached_) return;
  attached_ = false;
  run_or_rest();
  listen(false);
  guards_.detach();
  memory_.detach();
  ValueNumbers::stop();
}

}  // namespace leadline::torch
