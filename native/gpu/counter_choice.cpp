#include "gpu/counter_choice.h"

#include <algorithm>
#include <cstring>

namespace leadline::gpu {
namespace {

bool contains(const std::vector<const char*>& names, const char* name) {
  return std::ranges::any_of(names, [name](const char* one) { return std::strcmp(one, name) == 0; });
}

struct Search {
  const CounterRecipes& all;
  const std::vector<std::string>& wanted;
  const std::function<std::size_t(const std::vector<const char*>&)>& passes;

  bool from(std::size_t at, CounterChoice& chosen) {
    if (at == wanted.size()) return true;
    for (const CounterRecipe& recipe : recipes_of(all, wanted[at])) {
      chosen.recipes.push_back(&recipe);
      if (passes(chosen.vendors()) == 1 && from(at + 1, chosen)) return true;
      chosen.recipes.pop_back();
    }
    return false;
  }
};

}  // namespace

const std::vector<CounterRecipe>& recipes_of(const CounterRecipes& all, const std::string& name) {
  static const std::vector<CounterRecipe> none;
  for (const auto& [known, ways] : all) {
    if (known == name) return ways;
  }
  return none;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::vector<const char*> CounterChoice::vendors() const {
  std::vector<const char*> names;
  for (const CounterRecipe* recipe : recipes) {
    for (const char* name : recipe->vendors) {
      if (!contains(names, name)) names.push_back(name);
    }
  }
  return names;
}

std::vector<CountedMetric> CounterChoice::metrics() const {
  std::vector<CountedMetric> all;
  for (const CounterRecipe* recipe : recipes) all.insert(all.end(), recipe->metrics.begin(), recipe->metrics.end());
  return all;
}

CounterChoice choose_counters(const CounterRecipes& all, const std::vector<std::string>& asked,
                              const std::function<std::size_t(const std::vector<const char*>&)>& passes) {
  CounterChoice choice;
  for (const std::string& name : asked) {
    const auto& ways = recipes_of(all, name);
    if (std::ranges::none_of(ways, [&](const CounterRecipe& way) { return passes(way.vendors) > 0; })) {
      choice.unknown.push_back(name);
      continue;
    }
    // What was asked for first stays; all ways are tried anew, since others may fit together.
    std::vector<std::string> wanted = choice.taken;
    wanted.push_back(name);
    CounterChoice larger;
    if (Search{all, wanted, passes}.from(0, larger)) {
      choice.recipes = larger.recipes;
      choice.taken = wanted;
    } else {
      choice.left_out.push_back(name);
    }
  }
  return choice;
}

}  // namespace leadline::gpu
