// CUPTI's plan for counting on one chip: which of its metrics are taken, how the device must be set up for them, and
// what its readings amount to in our metrics.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "providers/nvidia/counter_choice.h"
#include "providers/nvidia/cupti_library.h"

namespace leadline::nvidia {

class CounterPlan {
 public:
  CounterPlan(const PmSamplingFunctions& call, cupti::ProfilerType type) : call_(call), type_(type) {}
  CounterPlan(const CounterPlan&) = delete;
  CounterPlan& operator=(const CounterPlan&) = delete;

  struct Wanted {
    std::vector<std::string> metrics;
    bool in_one_pass = true;
    std::vector<const char*> beside = {};  // CUPTI's metrics that are counted in any case
  };
  // Takes as much of it as the chip can count. False where that is nothing, or what CUPTI refused, in *failed.
  bool choose(const std::string& chip, const std::vector<std::uint8_t>& available, const Wanted& wanted,
              cupti::Result* failed);
  // CUPTI's object is let go of.
  void release() noexcept;

  const CounterChoice& choice() const noexcept { return choice_; }
  const std::vector<const char*>& vendors() const noexcept { return vendors_; }
  const std::vector<std::uint8_t>& config() const noexcept { return config_; }
  std::size_t passes() const noexcept { return passes_; }

  // The values of one sample or range of an image, in the order of vendors(); false where CUPTI does not know them.
  bool evaluate(const std::vector<std::uint8_t>& image, std::size_t index);
  double value(const char* vendor) const noexcept;
  // The same as our metrics, in the order of choice().metrics(), behind what is in `values`.
  void add_to(std::vector<double>* values) const;

 private:
  bool make(const std::string& chip, const std::uint8_t* available, const std::vector<const char*>& names,
            std::size_t* passes, cupti::Result* result);
  std::size_t value_place(const char* vendor) const noexcept;

  const PmSamplingFunctions& call_;
  const cupti::ProfilerType type_;
  cupti::ProfilerHost host_ = nullptr;
  CounterChoice choice_;
  std::vector<const char*> vendors_;
  std::vector<double> values_;
  std::vector<std::uint8_t> config_;
  std::size_t passes_ = 0;
};

// A structure of CUPTI's that says its size.
template <class Params>
Params sized() {
  Params params{};
  params.size = sizeof(Params);
  return params;
}

// What CounterPlan has to know of a device: its chip, and what of it may be counted now, which `available` answers
// `ask`.
template <class Ask, class Call>
cupti::Result look_at_device(const PmSamplingFunctions& call, std::size_t device, Ask ask, Call available,
                             std::string* chip, std::vector<std::uint8_t>* image) {
  auto initialize = sized<cupti::ProfilerInitialize>();
  cupti::Result result = call.initialize(&initialize);
  auto name = sized<cupti::ChipName>();
  name.device = device;
  if (result == cupti::kSuccess) result = call.chip_name(&name);
  if (result == cupti::kSuccess) result = available(&ask);  // how many bytes it takes
  if (result != cupti::kSuccess) return result;
  image->resize(ask.bytes);
  ask.image = image->data();
  *chip = name.name == nullptr ? "" : name.name;
  return available(&ask);
}

// An image for values that are read: as large as `size_of` says, and made by `initialize`.
template <class Size, class SizeOf, class Made, class Initialize>
bool make_image(Size bytes, SizeOf size_of, Made made, Initialize initialize, std::vector<std::uint8_t>* image) {
  if (size_of(&bytes) != cupti::kSuccess) return false;
  image->assign(bytes.bytes, 0);
  made.bytes = image->size();
  made.image = image->data();
  return initialize(&made) == cupti::kSuccess;
}

}  // namespace leadline::nvidia
