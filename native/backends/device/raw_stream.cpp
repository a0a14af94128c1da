#include "backends/device/raw_stream.h"

#include <algorithm>
#include <cstdint>

namespace leadline::device {
namespace {

void add(Row& row, const RawAccess& access, u64 offset, u64 inside) {
  u64* const counts[kKinds] = {&row.reads, &row.writes, &row.atomics};
  u64* const bytes[kKinds] = {&row.read_bytes, &row.written_bytes, &row.atomic_bytes};
  ++*counts[access.kind];
  *bytes[access.kind] += inside;
  row.least = std::min(row.least, offset);
  row.most = std::max(row.most, offset + inside);
}

}  // namespace

Analysed analyse(const RawAccess* accesses, std::size_t count, const Range* ranges, std::size_t range_count,
                 u32 page_shift) {
  Analysed result;
  std::vector<Row> rows(range_count);
  std::vector<std::vector<u32>> pages(range_count);
  std::size_t last = 0;
  for (const RawAccess* access = accesses; access != accesses + count; ++access) {
    if (access->kind >= kKinds) continue;
    // Neighbours in the stream mostly touch the same object.
    if (last >= range_count || access->address < ranges[last].begin || access->address >= ranges[last].end) {
      const Range* const above =
          std::upper_bound(ranges, ranges + range_count, access->address,
                           [](u64 address, const Range& range) { return address < range.begin; });
      if (above == ranges || access->address >= above[-1].end) {
        ++result.outside;
        result.outside_bytes += access->bytes;
        continue;
      }
      last = static_cast<std::size_t>(above - 1 - ranges);
    }
    const Range& range = ranges[last];
    const u64 offset = access->address - range.begin;
    const u64 inside = std::min<u64>(access->bytes, range.end - access->address);
    result.overrun_bytes += access->bytes - inside;
    if (pages[last].empty()) {
      pages[last].resize(words_for(range.end - range.begin, page_shift));
      rows[last].object = range.object;
      rows[last].range = static_cast<u32>(last);
      rows[last].least = UINT64_MAX;
    }
    add(rows[last], *access, offset, inside);
    for (u64 page = offset >> page_shift; inside != 0 && page <= (offset + inside - 1) >> page_shift; ++page) {
      u32& word = pages[last][page / 32];
      const u32 bit = 1u << page % 32;
      if ((word & bit) == 0) {
        word |= bit;
        ++rows[last].pages;
      }
    }
  }
  for (std::size_t index = 0; index < range_count; ++index) {
    if (pages[index].empty()) continue;
    Row& row = rows[index];
    row.first_word = result.words.size();
    row.word_count = static_cast<u32>(pages[index].size());
    result.words.insert(result.words.end(), pages[index].begin(), pages[index].end());
    result.rows.push_back(row);
  }
  return result;
}

}  // namespace leadline::device
