#include "unwind/way_out.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "unwind/instruction.h"

namespace leadline::unwind {
namespace {

constexpr size_t kMostInstructions = 1u << 15;
constexpr size_t kMostReturns = 4;  // that are compared
constexpr uintptr_t kLargestFunction = 1u << 20;
constexpr size_t kMostStores = 48;  // registers that a function saves, and some

// Code as it is now, a page at a time.
class Code {
 public:
  // Bytes of the instruction at pc; those beyond what can be read are zero. False: none can.
  bool at(uintptr_t pc, unsigned char* out) noexcept {
    for (size_t i = 0; i < kLongestInstruction;) {
      const uintptr_t here = pc + i;
      const uintptr_t start = here & ~uintptr_t{kPage - 1};
      if (start != start_ && !load(start)) {
        if (i == 0) return false;
        std::fill(out + i, out + kLongestInstruction, static_cast<unsigned char>(0));
        return true;
      }
      const size_t count = std::min<size_t>(kLongestInstruction - i, start + kPage - here);
      std::copy_n(page_.begin() + static_cast<ptrdiff_t>(here - start), count, out + i);
      i += count;
    }
    return true;
  }

 private:
  static constexpr size_t kPage = 4096;
  bool load(uintptr_t start) noexcept {
    start_ = 1;
    if (!read_code(start, page_.data(), kPage)) return false;
    start_ = start;
    return true;
  }
  uintptr_t start_ = 1;
  std::array<unsigned char, kPage> page_;
};

Expression plus(Expression value, int64_t add) noexcept {
  if (value.kind != Expression::kUnknown) value.add += add;
  return value;
}

struct Store {
  Expression address;
  Expression value;
};

class State {
 public:
  State(uintptr_t pc, uintptr_t end) : pc(pc), end(end) {
    registers_[kSpNumber] = {Expression::kSp};
    registers_[kBpNumber] = {Expression::kBp};
  }
  Expression& operator[](uint8_t reg) noexcept { return registers_[reg & 15]; }
  Expression& sp() noexcept { return registers_[kSpNumber]; }
  Expression value(uint8_t reg) const noexcept { return reg == kNoRegister ? Expression{} : registers_[reg & 15]; }
  void forget(uint16_t mask) noexcept {
    for (size_t i = 0; i < kGeneralRegisters; ++i) {
      if ((mask >> i & 1) != 0) registers_[i] = {};
    }
  }

  Expression load(const Expression& address) const noexcept {
    for (size_t i = stores_.size(); i-- > 0;) {
      if (stores_[i].address == address) return stores_[i].value;
    }
    if (address.kind == Expression::kSp) return {Expression::kAtSp, address.add, 0};
    if (address.kind == Expression::kBp) return {Expression::kAtBp, address.add, 0};
    return {};
  }
  void store(const Expression& address, const Expression& value) {
    if (address.kind == Expression::kUnknown) return;
    for (Store& known : stores_) {
      if (known.address != address) continue;
      known.value = value;
      return;
    }
    if (stores_.size() < kMostStores) stores_.push_back({address, value});
  }
  void push(const Expression& value) {
    sp() = plus(sp(), -8);
    store(sp(), value);
  }
  Expression pop() noexcept {
    const Expression value = load(sp());
    sp() = plus(sp(), 8);
    return value;
  }

  uintptr_t pc;
  uintptr_t end;  // of the function; the way does not go on there

 private:
  std::array<Expression, kGeneralRegisters> registers_{};
  std::vector<Store> stores_;
};

class Following {
 public:
  std::vector<WayOut> follow(uintptr_t pc, uintptr_t end) {
    waiting_.emplace_back(pc, end);
    while (!waiting_.empty() && returns_ < kMostReturns && left_ > 0) {
      State state = std::move(waiting_.back());
      waiting_.pop_back();
      while (left_ > 0 && step(state)) --left_;
    }
    return std::move(found_);
  }

 private:
  // False where the way ends.
  bool step(State& state) {
    if (state.pc == state.end || !seen_.insert(state.pc).second) return false;
    unsigned char bytes[kLongestInstruction];
    if (!code_.at(state.pc, bytes)) return false;
    const Instruction now = read_instruction(bytes, state.pc);
    if (now.length == 0) return false;
    state.pc += now.length;
    state.forget(now.writes);
    switch (now.does) {
      case Does::kOther:
        break;
      case Does::kPush:
        state.push(state.value(now.reg));
        break;
      case Does::kPop: {
        const Expression value = state.pop();
        if (now.reg != kNoRegister) state[now.reg] = value;
        break;
      }
      case Does::kMove:
        state[now.reg] = state.value(now.base);
        break;
      case Does::kAdd:
        state[now.reg] = plus(state[now.reg], now.value);
        break;
      case Does::kAddress:
        state[now.reg] = plus(state.value(now.base), now.value);
        break;
      case Does::kLoad:
        state[now.reg] = state.load(plus(state.value(now.base), now.value));
        break;
      case Does::kStore:
        state.store(plus(state.value(now.base), now.value), state.value(now.reg));
        break;
      case Does::kLeave:
        state.sp() = state[kBpNumber];
        state[kBpNumber] = state.pop();
        break;
      case Does::kJump:
        go_to(state, now.target);
        break;
      case Does::kBranch:
        if (!seen_.contains(now.target)) {
          waiting_.push_back(state);
          go_to(waiting_.back(), now.target);
        }
        break;
      case Does::kCall:
        if (is_padding(state.pc)) return false;  // it does not return
        state.forget(kCallerSaved);
        break;
      case Does::kReturn:
        returned({state.sp(), state[kBpNumber]});
        return false;
      case Does::kStop:
        return false;
    }
    return true;
  }
  // Also to another function, which then returns in this one's place.
  static void go_to(State& state, uintptr_t target) noexcept {
    if (target >= state.end || target < state.pc - std::min<uintptr_t>(state.pc, kLargestFunction)) state.end = 0;
    state.pc = target;
  }
  // What fills up the space between functions.
  bool is_padding(uintptr_t pc) noexcept {
    unsigned char bytes[kLongestInstruction];
    if (!code_.at(pc, bytes)) return true;
    size_t at = 0;
    while (at < 8 && (bytes[at] == 0x66 || bytes[at] == 0x2e)) ++at;
    return bytes[at] == 0xcc || bytes[at] == 0x90 || (bytes[at] == 0x0f && bytes[at + 1] == 0x1f);
  }
  void returned(const WayOut& way) {
    if (way.return_at.kind == Expression::kUnknown || way.bp.kind == Expression::kUnknown) return;
    if (way.return_at.kind == Expression::kSp && way.return_at.add < 0) return;
    ++returns_;
    if (std::find(found_.begin(), found_.end(), way) == found_.end()) found_.push_back(way);
  }

  Code code_;
  std::vector<State> waiting_;
  std::unordered_set<uintptr_t> seen_;
  std::vector<WayOut> found_;
  size_t returns_ = 0;
  size_t left_ = kMostInstructions;
};

}  // namespace

bool jumps_on(uintptr_t function, uintptr_t to) {
  Code code;
  std::vector<uintptr_t> waiting = {function};
  std::unordered_set<uintptr_t> seen;
  while (!waiting.empty()) {
    uintptr_t pc = waiting.back();
    waiting.pop_back();
    while (seen.size() < kMostInstructions && seen.insert(pc).second) {
      unsigned char bytes[kLongestInstruction];
      if (!code.at(pc, bytes)) break;
      const Instruction now = read_instruction(bytes, pc);
      if (now.length == 0 || now.does == Does::kReturn) break;
      if (now.does == Does::kStop) {
        if (now.computed) return true;
        break;
      }
      pc += now.length;
      if (now.does != Does::kJump && now.does != Does::kBranch) continue;
      const uintptr_t target = now.does == Does::kJump ? resolve(now.target) : now.target;
      if (target == to) return true;
      if (now.does == Does::kJump) {
        pc = target;
      } else {
        waiting.push_back(target);
      }
    }
  }
  return false;
}

std::vector<WayOut> ways_out(uintptr_t pc, uintptr_t end) { return Following().follow(pc, end); }

}  // namespace leadline::unwind
