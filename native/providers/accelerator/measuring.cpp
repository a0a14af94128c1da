#include "providers/accelerator/measuring.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/ids.h"
#include "base/own_thread.h"
#include "gpu/in_callback.h"
#include "gpu/measure.h"
#include "providers/accelerator/callbacks.h"

namespace leadline::accelerator {
namespace {

using InCallback = gpu::InCallback<Measuring>;
using std::chrono::steady_clock;

constexpr gpu::Vendor kVendor{"graph", nullptr, false, 3};
constexpr std::chrono::milliseconds kPatience{100};    // for calls that are at their begin or end
constexpr std::chrono::milliseconds kWaitAtStop{400};  // for work that is on its way
constexpr std::chrono::milliseconds kInterval{50};     // between looks at ended work and new libraries
constexpr std::size_t kMostStreams = 4096;

// Errors of the system are the program's to see.
struct KeptErrno {
  ~KeptErrno() { errno = kept; }
  const int kept = errno;
};

}  // namespace

Measuring::Measuring(const Description& description, std::function<void(DeviceDescription)> describe_device)
    : description_(description),
      describe_device_(std::move(describe_device)),
      calls_(tables_),
      fold_(tables_.launches, tables_.graphs, gpu::kernel_sources(), kVendor),
      places_(description) {}

Measuring::~Measuring() { InCallback::forget(this); }

void Measuring::start(bool paused) {
  paused ? pause() : resume();
  InCallback::use(this);
  {
    const std::lock_guard lock(fold_mutex_);
    places_.open();
  }
  thread_ = own_thread([this] { run(); });
}

void Measuring::pause() {
  calls_.api().pause();
  if (places_changed_ != 0) leadline_monitor_unregister(places_changed_);
  places_changed_ = 0;
  const std::lock_guard lock(fold_mutex_);
  fold_.pause(leadline_monitor_now());
}

void Measuring::resume() {
  {
    const std::lock_guard lock(fold_mutex_);
    fold_.resume(leadline_monitor_now());
  }
  if (places_changed_ == 0) {
    leadline_monitor_register(LEADLINE_DOMAIN_REGION, on_place_changed, this, &places_changed_);
  }
  calls_.api().open();
}

void Measuring::on_place_changed(const leadline_event* event, void* user) {
  gpu::ApiCalls& calls = static_cast<Measuring*>(user)->calls_.api();
  if (event->phase == LEADLINE_INSTANT || !calls.is_open()) return;
  const std::int64_t now = leadline_monitor_now();
  event->phase == LEADLINE_BEGIN ? calls.region_begins(now, leadline_monitor_context()) : calls.region_ends(now);
}

void Measuring::fold_one(const Finished& finished) {
  const Request& request = finished.request;
  gpu::Work work;
  work.kind = request.kind;
  work.correlation = request.correlation;
  work.device = request.device;
  work.stream = request.stream;
  work.bytes = request.bytes;
  work.direction = request.direction;
  work.name = request.name.data();
  switch (request.direction) {
    case gpu::Direction::kHtoD:
      work.source = gpu::Memory::kHost;
      work.destination = gpu::Memory::kDevice;
      break;
    case gpu::Direction::kDtoH:
      work.source = gpu::Memory::kDevice;
      work.destination = gpu::Memory::kHost;
      break;
    case gpu::Direction::kHtoH:
      work.source = work.destination = gpu::Memory::kHost;
      break;
    default:
      work.source = work.destination = gpu::Memory::kDevice;
  }
  // Where only the end is known, work began when it could: a stream does one thing after the other.
  if (last_end_ns_.size() > kMostStreams) last_end_ns_.clear();
  std::int64_t& last_end = last_end_ns_[{work.device, work.stream}];
  work.end_ns = finished.ran.end_ns;
  work.start_ns = finished.ran.start_ns != kUnknownTime ? finished.ran.start_ns : std::max(request.called_ns, last_end);
  work.start_ns = std::min(work.start_ns, work.end_ns);
  last_end = std::max(last_end, work.end_ns);
  if (devices_.insert(work.device).second) describe_devices();
  fold_.add(work);
}

void Measuring::fold() {
  const std::lock_guard lock(fold_mutex_);
  const std::int64_t begin = leadline_monitor_now();
  try {
    const std::size_t folded = calls_.finished().drain([this](const Finished& finished) { fold_one(finished); });
    fold_.settle_before(tables_.launches.watermark());
    places_.look();
    if (folded > 0) fold_ns_ += leadline_monitor_now() - begin;
  } catch (...) {
    gpu::count_loss(LossKind::kInternalError, 1, "Work of an accelerator could not be folded for lack of memory.");
  }
}

void Measuring::run() {
  std::unique_lock lock(wake_mutex_);
  while (!ending_) {
    calls_.wake().wait_for(lock, kInterval);
    if (ending_) break;
    lock.unlock();
    fold();
    lock.lock();
  }
}

void Measuring::stop() {
  // Waits while work keeps ending: what does not end must not hold up the program.
  const auto until = steady_clock::now() + kWaitAtStop;
  std::uint64_t outstanding = tables_.launches.outstanding();
  auto last_change = steady_clock::now();
  while (outstanding > 0 && steady_clock::now() < until && steady_clock::now() - last_change < kPatience) {
    fold();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const std::uint64_t now = tables_.launches.outstanding();
    if (now != outstanding) last_change = steady_clock::now();
    outstanding = now;
  }
  calls_.api().close();
  if (places_changed_ != 0) leadline_monitor_unregister(places_changed_);
  places_changed_ = 0;
  {
    const std::lock_guard lock(wake_mutex_);
    ending_ = true;
  }
  calls_.wake().notify_all();
  if (thread_.joinable()) thread_.join();
  fold();
  {
    const std::lock_guard lock(fold_mutex_);
    places_.close();
  }
  InCallback::forget(this);
  left_alone_ = InCallback::wait(kPatience);
  fold();
  const std::lock_guard lock(fold_mutex_);
  fold_.finish();
  describe_devices();
  gpu::count_loss(LossKind::kGpuWorkUnfinished, tables_.launches.outstanding(),
                  "The end of some work of an accelerator was not reported before measuring stopped.");
  gpu::count_loss(LossKind::kGpuRecordUnattributed, calls_.unclaimed(),
                  "An accelerator reported the end of work whose launch was not seen.");
}

void Measuring::abandon(leadline_subscription* places) noexcept {
  *places = std::exchange(places_changed_, 0);
  calls_.api().close();
  places_.abandon();
  InCallback::after_fork();
  if (thread_.joinable()) thread_.detach();  // it does not exist in this process
}

void Measuring::describe_devices() {
  if (!describe_device_) return;
  const std::map<std::int32_t, gpu::DeviceTotals> totals = fold_.totals();
  for (const std::int32_t index : devices_) {
    const auto number = static_cast<std::size_t>(index / kDevicesOfOne);
    if (index < 0 || number >= description_.accelerators.size()) continue;
    const auto found = totals.find(index);
    std::string detail = "{";
    if (found != totals.end()) detail += gpu::totals_json(found->second);
    detail += '}';
    describe_device_({index, description_.accelerators[number]->name, "", 0, detail, DeviceType::kOther});
  }
}

Details Measuring::details() {
  const std::lock_guard lock(fold_mutex_);
  Details details;
  details.calls = calls_.api().count();
  details.records = fold_.counters().records;
  details.unattributed = fold_.counters().unattributed;
  details.unclaimed = calls_.unclaimed();
  details.outstanding = tables_.launches.outstanding();
  details.unreadable = calls_.unreadable();
  details.functions_bound = places_.functions_bound();
  details.fold_ns = fold_ns_;
  details.audited = places_.audited();
  for (const auto& [library, functions] : places_.missing()) {
    details.libraries.push_back(library);
    for (const std::string& function : functions) details.missing.push_back(library + "\t" + function);
  }
  return details;
}

}  // namespace leadline::accelerator

using leadline::accelerator::Callbacks;
using leadline::accelerator::InCallback;
using leadline::accelerator::KeptErrno;
using leadline::accelerator::Places;

extern "C" void leadline_accelerator_begin(leadline::accelerator::Frame* frame) {
  const KeptErrno kept;
  const Places::Target target = Places::target(frame->number);
  frame->original = target.original;
  frame->words = target.function != nullptr ? target.function->stack_words : 0;
  frame->state = 0;
  const InCallback measuring;
  if (measuring && target.function != nullptr) measuring->calls().begin(*target.function, *frame);
}

extern "C" void leadline_accelerator_end(leadline::accelerator::Frame* frame) {
  if (frame->state == 0) return;
  const KeptErrno kept;
  const InCallback measuring;
  if (measuring) measuring->calls().end(*frame);
}

extern "C" void* leadline_accelerator_called_back(std::uint32_t number) {
  const KeptErrno kept;
  const Callbacks::Called called = Callbacks::called(number);
  const InCallback measuring;
  if (measuring && called.request) measuring->calls().called_back(*called.request, called.session);
  return called.original;
}
