#include "offline/nest.h"

#include <algorithm>

namespace leadline::offline {

Nested nest(std::span<const int32_t> thread, std::span<const int64_t> start_ns, std::span<const int64_t> end_ns,
            std::span<const uint8_t> timed, size_t threads) {
  const size_t count = thread.size();
  Nested found;
  found.above.resize(count);
  found.end_ns.resize(count);
  found.own_ns.assign(count, 0);
  found.depth.resize(count);
  std::vector<int32_t> holder(count);  // the innermost timed span that a span is or stands in
  std::vector<std::vector<int32_t>> open(threads);
  for (size_t row = 0; row < count; ++row) {
    auto& around = open[static_cast<size_t>(thread[row])];
    while (!around.empty() && found.end_ns[static_cast<size_t>(around.back())] <= start_ns[row]) around.pop_back();
    const int32_t above = around.empty() ? -1 : around.back();
    const auto outer = static_cast<size_t>(std::max(above, 0));
    const int64_t end = above < 0 ? end_ns[row] : std::min(end_ns[row], found.end_ns[outer]);
    found.above[row] = above;
    found.end_ns[row] = end;
    found.depth[row] = static_cast<int32_t>(around.size());
    holder[row] = above < 0 ? -1 : holder[outer];
    if (timed[row] != 0) {
      found.own_ns[row] = end - start_ns[row];
      if (holder[row] >= 0) found.own_ns[static_cast<size_t>(holder[row])] -= end - start_ns[row];
      holder[row] = static_cast<int32_t>(row);
    }
    around.push_back(static_cast<int32_t>(row));
  }
  return found;
}

}  // namespace leadline::offline
