// C functions that have called Python and not returned: as long as one has not, every Python frame from its caller
// outwards is the same call at the same instruction. A walk may end there.
//
// An anchor says nothing about frames that are not on the thread's chain at the moment (greenlets): whoever uses it
// meets its frame on the chain first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace leadline {

class CallAnchors {
 public:
  static constexpr size_t kDepth = 64;  // calls inside further ones are held by those

  struct Anchor {
    uintptr_t frame = 0;  // of the caller
    uint64_t call = 0;    // no two calls of a thread have the same
    uint32_t level = 0;   // the caller's frame is shown at this one, counted from 1; to be checked
  };

  // Those of the calling thread; nullptr where nobody follows it.
  static CallAnchors* mine() noexcept { return t_mine; }
  static void follow(CallAnchors* anchors) noexcept { t_mine = anchors; }

  // A call begins and ends. Ends come in any order: stacks may be exchanged in between.
  size_t open(uintptr_t frame) noexcept {
    const size_t at = count_++;
    if (at < kDepth) anchors_[at] = {frame, ++calls_, 0};
    return at;
  }
  void close(size_t at) noexcept {
    if (at < count_) count_ = at;
  }
  void clear() noexcept { count_ = 0; }

  size_t size() const noexcept { return count_ < kDepth ? count_ : kDepth; }
  Anchor& operator[](size_t at) noexcept { return anchors_[at]; }
  // nullptr: none.
  const Anchor* innermost() const noexcept { return count_ == 0 ? nullptr : &anchors_[size() - 1]; }

 private:
  static constinit __attribute__((tls_model("initial-exec"))) thread_local CallAnchors* t_mine;

  std::array<Anchor, kDepth> anchors_;
  size_t count_ = 0;
  uint64_t calls_ = 0;
};

}  // namespace leadline
