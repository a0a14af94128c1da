// The self-test: where in at::RecordFunction the sequence number and the forward thread stand.
//
// A known operator is run a few times while a callback keeps what it sees. The sequence number must stand at one and
// the same place every time; what follows it must look like the members that torch declares after it. Anything else: no
// sequence numbers, and the provider says so.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "providers/torch/record_function.h"

namespace leadline::torch {

struct Offsets {
  uint32_t sequence = 0;
  uint32_t forward_thread = 0;
  uint32_t inputs = 0;      // array reference: address and number
  uint32_t has_schema = 0;  // byte: 1 when the name is that of a registered operator, which never changes its address
  uint32_t schema = 0;      // then the address of its schema, which begins with that of the name; 0: where is not known
};

struct ProbeRun {
  std::string operator_name;  // as at::RecordFunction::name gives it
  int64_t sequence = -1;      // what torch itself says of the operator's autograd node
};

class Probe {
 public:
  explicit Probe(const Symbols& symbols);
  ~Probe();
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  // Tell what the program did since the last call; false when the operator was not seen.
  bool observe(const ProbeRun& run);
  // nullopt with a sentence in *why.
  std::optional<Offsets> conclude(std::string* why) const;

 private:
  uint64_t candidates_ = ~uint64_t{0};  // bit i: the sequence number may stand in word i
  uint64_t shaped_ = ~uint64_t{0};      // bit i: what follows word i looks right
  uint64_t schemas_ = ~uint64_t{0};     // bit i: a schema with the operator's name may stand in word i
  uint32_t seen_ = 0;
  Handle handle_ = 0;
  const Symbols& symbols_;
};

}  // namespace leadline::torch
