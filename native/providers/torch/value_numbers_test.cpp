#include "providers/torch/value_numbers.h"

#include <doctest/doctest.h>

#include <deque>
#include <ostream>
#include <vector>

#include "base/safe_pages.h"
#include "providers/torch/value.h"

using leadline::SafePages;
using leadline::torch::kInteger;
using leadline::torch::RecordFunction;
using leadline::torch::Symbols;
using leadline::torch::TensorLayout;
using leadline::torch::Value;
using leadline::torch::ValueNumbers;
using leadline::torch::Values;

namespace {

constexpr uint32_t kListTag = 12;
constexpr const char* kText = R"({"shapes": [[]], "types": ["GenericList"]})";

// c10::detail::ListImpl: table of methods, reference count, vector of values.
struct List {
  uint64_t methods = 0;
  uint64_t references = 1;
  std::vector<Value> values;
};

Value of(const List& list) { return {reinterpret_cast<uint64_t>(&list), kListTag}; }
Value of(uint64_t number) { return {number, kInteger}; }

// Whether an operator with this argument is known when it is called for the second time.
bool known_again(const Value& argument) {
  const Values inputs{&argument, 1};
  const auto* const function = reinterpret_cast<const RecordFunction*>(reinterpret_cast<const char*>(&inputs) - 8);
  Symbols symbols;
  symbols.write_value = [](std::ostream& stream, const void*) -> std::ostream& { return stream; };
  bool known = false;
  for (int call = 0; call < 2; ++call) {
    known = ValueNumbers::begins(symbols, *function, "aten::of_a_list", kText, 8) != 0;
    ValueNumbers::ends(*function);
  }
  return known;
}

void learn() {
  const List one{0, 1, {of(1)}};
  const Value argument = of(one);
  const Values inputs{&argument, 1};
  ValueNumbers::learn(*reinterpret_cast<const RecordFunction*>(reinterpret_cast<const char*>(&inputs) - 8), kText, 8);
  ValueNumbers::begin(TensorLayout{8, 16, 24, 32, 0, 0, 8});
}

}  // namespace

// What a list looks like is learnt by reads through the kernel, which an emulated processor and some sandboxes forbid.
TEST_CASE("Lists of numbers, and of such lists, are known again where the kernel reads for this process") {
  learn();
  const bool learnt = SafePages::allowed();
  const List numbers{0, 1, std::vector<Value>(200, of(7))};
  CHECK(known_again(of(numbers)) == learnt);
  const List pair{0, 1, {of(1), of(2)}};
  const List pairs{0, 1, std::vector<Value>(50, of(pair))};
  CHECK(known_again(of(pairs)) == learnt);
  ValueNumbers::stop();
}

TEST_CASE("A list nested a hundred thousand deep is none of which anything is known") {
  learn();
  std::deque<List> nested(100'000);
  for (size_t i = 0; i + 1 < nested.size(); ++i) nested[i].values = {of(nested[i + 1])};
  CHECK(!known_again(of(nested.front())));
  ValueNumbers::stop();
}

TEST_CASE("Nor is a list that stands two hundred times in a list that does so in another one, and again") {
  learn();
  const List numbers{0, 1, std::vector<Value>(200, of(7))};
  const List second{0, 1, std::vector<Value>(200, of(numbers))};
  const List third{0, 1, std::vector<Value>(200, of(second))};
  const List fourth{0, 1, std::vector<Value>(200, of(third))};
  CHECK(!known_again(of(fourth)));  // 1,600 million numbers
  ValueNumbers::stop();
}
