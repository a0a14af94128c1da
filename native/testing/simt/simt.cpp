// See simt.h. A scheduler of fibers: lanes that can go on stand in `ready_`, all others wait in their warp.
#include "testing/simt/simt.h"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define LEADLINE_SIMT_ADDRESS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LEADLINE_SIMT_ADDRESS 1
#endif
#endif
#ifdef LEADLINE_SIMT_ADDRESS
extern "C" void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom, size_t size);    // NOLINT
extern "C" void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom, size_t* size);  // NOLINT
#endif

namespace leadline::simt {
namespace {

constexpr size_t kStack = size_t{128} << 10;
constexpr unsigned kWidth = 32;

enum class State { kReady, kApart, kCollective, kAtBarrier, kEnded };
enum class What { kMatch, kBallot, kShuffle, kSync };

struct Lane {
  ucontext_t context{};
  std::unique_ptr<char[]> stack;
  void* fake_stack = nullptr;  // of the address sanitizer
  unsigned block = 0;
  unsigned thread = 0;
  unsigned warp = 0;
  unsigned lane = 0;
  State state = State::kReady;
  uint64_t step = 0;
  // Of the collective it waits in, and what it gets.
  What what = What::kSync;
  std::source_location place;
  unsigned mask = 0;
  unsigned long long value = 0;
  unsigned from = 0;
  unsigned long long result = 0;
};

struct Warp {
  std::array<Lane*, kWidth> lanes{};
  unsigned count = 0;
  unsigned ready = 0;
};

class Device {
 public:
  explicit Device(const Launch& launch) : launch_(launch), random_(launch.seed) {
    const unsigned blocks = launch.grid.x * launch.grid.y * launch.grid.z;
    const unsigned threads = launch.block.x * launch.block.y * launch.block.z;
    for (unsigned block = 0; block < blocks; ++block) {
      for (unsigned thread = 0; thread < threads; ++thread) {
        if (thread % kWidth == 0) warps_.emplace_back();
        auto lane = std::make_unique<Lane>();
        lane->block = block;
        lane->thread = thread;
        lane->warp = static_cast<unsigned>(warps_.size() - 1);
        lane->lane = thread % kWidth;
        Warp& warp = warps_.back();
        warp.lanes[lane->lane] = lane.get();
        ++warp.count;
        ++warp.ready;
        ready_.push_back(lane.get());
        lanes_.push_back(std::move(lane));
      }
    }
  }

  std::string run();
  Lane& current() { return *current_; }
  const Warp& warp_of(const Lane& lane) const { return warps_[lane.warp]; }

  void sync_block() {
    current_->state = State::kAtBarrier;
    release_block(current_->block);
    wait();
  }
  unsigned threads_of_block() const { return launch_.block.x * launch_.block.y * launch_.block.z; }
  uint64_t clock() { return launch_.clock ? launch_.clock() : ++readings_; }

  unsigned active_mask() {
    Lane& lane = *current_;
    lane.state = State::kApart;
    wait();
    return lane.mask;
  }

  unsigned long long collective(What what, unsigned mask, unsigned long long value, unsigned from,
                                const std::source_location& place) {
    Lane& lane = *current_;
    lane.what = what;
    lane.place = place;
    lane.mask = mask;
    lane.value = value;
    lane.from = from;
    lane.state = State::kCollective;
    if (gathered(lane)) {
      meet(lane);
      lane.state = State::kReady;  // it goes on itself
    } else {
      wait();
    }
    return lane.result;
  }

  void may_leave() {
    if (ready_.empty() || random_() % 4 != 0) return;
    ready_.push_back(current_);
    next();
  }

 private:
  static void begin(unsigned low, unsigned high);
  void body();
  void wait();
  void next();
  void switch_to(Lane* to);
  bool gathered(const Lane& lane) const;
  void meet(Lane& last);
  void release_apart(Warp& warp);
  void release_block(unsigned block);
  void make_ready(Lane& lane);
  std::string deadlock() const;

  const Launch& launch_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Warp> warps_;
  std::vector<Lane*> ready_;
  uint64_t readings_ = 0;
  Lane* current_ = nullptr;
  ucontext_t main_{};
  void* main_fake_stack_ = nullptr;
  const void* main_stack_ = nullptr;
  size_t main_size_ = 0;
};

Device* g_device = nullptr;
uint64_t g_atomics = 0;

void Device::begin(unsigned low, unsigned high) {
  auto* device = reinterpret_cast<Device*>(uintptr_t{low} | uintptr_t{high} << 32);
  device->body();
}

void Device::body() {
#ifdef LEADLINE_SIMT_ADDRESS
  const void* from = nullptr;
  size_t size = 0;
  __sanitizer_finish_switch_fiber(nullptr, &from, &size);
  if (main_stack_ == nullptr) {
    main_stack_ = from;  // the first lane is entered from run()
    main_size_ = size;
  }
#endif
  launch_.thread();
  current_->state = State::kEnded;
  release_block(current_->block);
  wait();
}

// The last one that is missed has come, or has ended.
void Device::release_block(unsigned block) {
  const unsigned threads = threads_of_block();
  const auto first = lanes_.begin() + static_cast<std::ptrdiff_t>(size_t{block} * threads);
  const auto is_missed = [](const auto& lane) {
    return lane->state != State::kAtBarrier && lane->state != State::kEnded;
  };
  if (std::any_of(first, first + threads, is_missed)) return;
  std::for_each(first, first + threads, [this](const auto& lane) {
    if (lane->state == State::kAtBarrier) make_ready(*lane);
  });
}

// The current lane goes on when somebody has made it ready.
void Device::wait() {
  Warp& warp = warps_[current_->warp];
  if (--warp.ready == 0) release_apart(warp);
  next();
}

void Device::next() {
  if (ready_.empty()) return switch_to(nullptr);
  std::swap(ready_[random_() % ready_.size()], ready_.back());
  Lane* const to = ready_.back();
  ready_.pop_back();
  if (to != current_) switch_to(to);
}

void Device::switch_to(Lane* to) {
  Lane* const from = current_;
  current_ = to;
  ucontext_t* const old_context = from != nullptr ? &from->context : &main_;
  ucontext_t* const new_context = to != nullptr ? &to->context : &main_;
#ifdef LEADLINE_SIMT_ADDRESS
  void** const fake = from != nullptr ? &from->fake_stack : &main_fake_stack_;
  const bool ends = from != nullptr && from->state == State::kEnded;
  __sanitizer_start_switch_fiber(ends ? nullptr : fake, to != nullptr ? to->stack.get() : main_stack_,
                                 to != nullptr ? kStack : main_size_);
#endif
  swapcontext(old_context, new_context);
#ifdef LEADLINE_SIMT_ADDRESS
  __sanitizer_finish_switch_fiber(*fake, nullptr, nullptr);
#endif
}

void Device::make_ready(Lane& lane) {
  lane.state = State::kReady;
  ++warps_[lane.warp].ready;
  ready_.push_back(&lane);
}

// Nothing else of the warp can go on: those that stand at an equal step go together, or as the device likes.
void Device::release_apart(Warp& warp) {
  std::vector<Lane*> apart;
  for (Lane* lane : warp.lanes) {
    if (lane != nullptr && lane->state == State::kApart) apart.push_back(lane);
  }
  if (apart.empty()) return;
  const Lane* chosen = apart[random_() % apart.size()];
  if (launch_.together) {
    for (const Lane* lane : apart) {
      if (lane->step < chosen->step) chosen = lane;
    }
  }
  const uint64_t step = chosen->step;
  unsigned mask = 0;
  for (const Lane* lane : apart) {
    if (lane->step == step && (launch_.together || lane == chosen || random_() % 4 != 0)) mask |= 1u << lane->lane;
  }
  for (Lane* lane : apart) {
    if ((mask >> lane->lane & 1) == 0) continue;
    lane->mask = mask;
    make_ready(*lane);
  }
}

bool Device::gathered(const Lane& lane) const {
  const Warp& warp = warps_[lane.warp];
  if ((lane.mask >> lane.lane & 1) == 0) return false;  // a lane outside of its own mask waits for ever
  for (unsigned other = 0; other < kWidth; ++other) {
    if ((lane.mask >> other & 1) == 0) continue;
    const Lane* one = warp.lanes[other];
    if (one == nullptr || one->state != State::kCollective || one->what != lane.what || one->mask != lane.mask ||
        one->place.line() != lane.place.line() || one->place.column() != lane.place.column()) {
      return false;
    }
  }
  return true;
}

void Device::meet(Lane& last) {
  const Warp& warp = warps_[last.warp];
  const unsigned mask = last.mask;
  for (unsigned index = 0; index < kWidth; ++index) {
    if ((mask >> index & 1) == 0) continue;
    Lane& lane = *warp.lanes[index];
    lane.result = 0;
    if (lane.what == What::kShuffle) {
      // A lane outside of the mask has nothing to give: what comes is not defined, so it is something odd.
      lane.result = (mask >> lane.from & 1) != 0 ? warp.lanes[lane.from]->value : 0xdeadbeefdeadbeefull;
      continue;
    }
    for (unsigned other = 0; other < kWidth; ++other) {
      if ((mask >> other & 1) == 0) continue;
      const unsigned long long value = warp.lanes[other]->value;
      if (lane.what == What::kMatch ? value == lane.value : value != 0) lane.result |= 1ull << other;
    }
  }
  for (unsigned index = 0; index < kWidth; ++index) {
    if ((mask >> index & 1) != 0 && warp.lanes[index] != &last) make_ready(*warp.lanes[index]);
  }
}

std::string Device::deadlock() const {
  for (size_t number = 0; number < warps_.size(); ++number) {
    const Warp& warp = warps_[number];
    for (const Lane* lane : warp.lanes) {
      if (lane == nullptr || lane->state != State::kCollective) continue;
      unsigned here = 0;
      unsigned ended = 0;
      for (const Lane* other : warp.lanes) {
        if (other == nullptr) continue;
        const bool waits = other->state == State::kCollective && other->place.line() == lane->place.line();
        if (waits) here |= 1u << other->lane;
        if (other->state == State::kEnded) ended |= 1u << other->lane;
      }
      const std::string path = lane->place.file_name();
      char text[400];
      std::snprintf(text, sizeof(text),
                    "Deadlock: in warp %zu the lanes 0x%08x wait at %s:%u for the lanes 0x%08x, of which 0x%08x have "
                    "ended and the others wait elsewhere.",
                    number, here, path.substr(path.find_last_of('/') + 1).c_str(),
                    static_cast<unsigned>(lane->place.line()), lane->mask & ~here, lane->mask & ended);
      return text;
    }
  }
  return {};
}

std::string Device::run() {
  for (auto& lane : lanes_) {
    lane->stack = std::make_unique_for_overwrite<char[]>(kStack);
    getcontext(&lane->context);
    lane->context.uc_stack.ss_sp = lane->stack.get();
    lane->context.uc_stack.ss_size = kStack;
    lane->context.uc_link = nullptr;
    const auto self = reinterpret_cast<uintptr_t>(this);
    makecontext(&lane->context, reinterpret_cast<void (*)()>(&Device::begin), 2, static_cast<unsigned>(self),
                static_cast<unsigned>(self >> 32));
  }
  next();  // comes back when no lane can go on
  return deadlock();
}

}  // namespace

std::string run(const Launch& launch) {
  Device device(launch);
  g_atomics = 0;
  Device* const before = g_device;
  g_device = &device;
  std::string problem = device.run();
  g_device = before;
  return problem;
}

unsigned block_number() { return g_device->current().block; }
unsigned thread_number() { return g_device->current().thread; }
uint64_t atomics() { return g_atomics; }
void sync_block() { g_device->sync_block(); }
void at_step(uint64_t step) { g_device->current().step = step; }

namespace words {

unsigned active_mask() { return g_device->active_mask(); }
unsigned match_any(unsigned mask, unsigned long long value, const Place& place) {
  return static_cast<unsigned>(g_device->collective(What::kMatch, mask, value, 0, place));
}
unsigned ballot(unsigned mask, bool value, const Place& place) {
  return static_cast<unsigned>(g_device->collective(What::kBallot, mask, value ? 1 : 0, 0, place));
}
unsigned long long shuffle(unsigned mask, unsigned long long value, unsigned lane, const Place& place) {
  return g_device->collective(What::kShuffle, mask, value, lane % kWidth, place);
}
void sync_warp(unsigned mask, const Place& place) { g_device->collective(What::kSync, mask, 0, 0, place); }
void may_leave() { g_device->may_leave(); }
void count_atomic() { ++g_atomics; }
unsigned lane() { return g_device->current().lane; }
unsigned lanes_of_warp() { return g_device->warp_of(g_device->current()).count; }
unsigned threads_of_block() { return g_device->threads_of_block(); }
uint64_t clock() { return g_device->clock(); }

}  // namespace words
}  // namespace leadline::simt
