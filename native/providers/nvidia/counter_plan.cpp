#include "providers/nvidia/counter_plan.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace leadline::nvidia {

void CounterPlan::release() noexcept {
  if (host_ == nullptr) return;
  auto gone = sized<cupti::HostObject>();
  gone.host = std::exchange(host_, nullptr);
  call_.host_deinitialize(&gone);
}

// A host object that has these metrics, in place of the one before; *passes is 0 where the chip does not know one.
bool CounterPlan::make(const std::string& chip, const std::uint8_t* available, const std::vector<const char*>& names,
                       std::size_t* passes, cupti::Result* result) {
  *passes = 0;
  release();
  auto made = sized<cupti::HostInitialize>();
  made.type = type_;
  made.chip = chip.c_str();
  made.available = available;
  *result = call_.host_initialize(&made);
  if (*result != cupti::kSuccess) return false;
  host_ = made.host;
  auto add = sized<cupti::HostAddMetrics>();
  add.host = host_;
  add.names = const_cast<const char**>(names.data());
  add.count = names.size();
  if (call_.host_add_metrics(&add) != cupti::kSuccess) return true;
  auto bytes = sized<cupti::HostImageSize>();
  bytes.host = host_;
  *result = call_.host_image_size(&bytes);
  if (*result != cupti::kSuccess) return false;
  config_.assign(bytes.bytes, 0);
  auto image = sized<cupti::HostImage>();
  image.host = host_;
  image.bytes = config_.size();
  image.image = config_.data();
  *result = call_.host_image(&image);
  if (*result != cupti::kSuccess) return false;
  auto count = sized<cupti::HostPasses>();
  count.bytes = config_.size();
  count.image = config_.data();
  *result = call_.host_passes(&count);
  *passes = count.passes;
  return *result == cupti::kSuccess;
}

bool CounterPlan::choose(const std::string& chip, const std::vector<std::uint8_t>& available, const Wanted& wanted,
                         cupti::Result* failed) {
  *failed = cupti::kSuccess;
  choice_ = choose_counters(wanted.metrics, [&](const std::vector<const char*>& names) {
    std::size_t passes = 0;
    cupti::Result result = cupti::kSuccess;
    if (!make(chip, available.data(), names, &passes, &result)) *failed = result;
    return wanted.in_one_pass ? passes : std::min<std::size_t>(passes, 1);
  });
  if (choice_.taken.empty()) return false;
  vendors_ = choice_.vendors();
  for (const char* name : wanted.beside) {
    if (value_place(name) == vendors_.size()) vendors_.push_back(name);
  }
  values_.assign(vendors_.size(), 0);
  return make(chip, available.data(), vendors_, &passes_, failed) && passes_ > 0 &&
         (passes_ == 1 || !wanted.in_one_pass);
}

bool CounterPlan::evaluate(const std::vector<std::uint8_t>& image, std::size_t index) {
  auto evaluate = sized<cupti::HostEvaluate>();
  evaluate.host = host_;
  evaluate.image = image.data();
  evaluate.bytes = image.size();
  evaluate.index = index;
  evaluate.names = vendors_.data();
  evaluate.count = vendors_.size();
  evaluate.values = values_.data();
  return call_.host_evaluate(&evaluate) == cupti::kSuccess;
}

std::size_t CounterPlan::value_place(const char* vendor) const noexcept {
  const auto place = std::ranges::find_if(vendors_, [&](const char* name) { return std::strcmp(name, vendor) == 0; });
  return static_cast<std::size_t>(place - vendors_.begin());
}

double CounterPlan::value(const char* vendor) const noexcept {
  const std::size_t place = value_place(vendor);
  return place < values_.size() ? values_[place] : 0;
}

void CounterPlan::add_to(std::vector<double>* values) const {
  std::array<double, 4> inputs{};
  for (const CounterRecipe* recipe : choice_.recipes) {
    for (std::size_t v = 0; v < recipe->vendors.size(); ++v) inputs[v] = value(recipe->vendors[v]);
    const std::size_t first = values->size();
    values->resize(first + recipe->metrics.size());
    recipe->compute(inputs.data(), &(*values)[first]);
  }
}

}  // namespace leadline::nvidia
