#include "providers/cpu/functions.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <limits>

namespace leadline::cpu {
namespace {

// What the dynamic section of a loaded library says of its symbols.
struct Symbols {
  const ElfW(Sym) * first = nullptr;
  size_t count = 0;
};

// The number of symbols is known only by the tables that look them up.
size_t count_by_gnu_hash(const uint32_t* table) {
  const uint32_t buckets = table[0];
  const uint32_t first = table[1];
  const uint32_t words = table[2];
  const uint32_t* const bucket = table + 4 + size_t{words} * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t* const chain = bucket + buckets;
  uint32_t last = 0;
  for (uint32_t i = 0; i < buckets; ++i) last = std::max(last, bucket[i]);
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) ++last;
  return size_t{last} + 1;
}

Symbols symbols_of(const dl_phdr_info& info) {
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type == PT_DYNAMIC)
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
  }
  Symbols found;
  if (dynamic == nullptr) return found;
  const auto address = [&](const ElfW(Dyn) & entry) {
    const uintptr_t value = entry.d_un.d_ptr;  // the loader has put addresses in place of offsets, mostly
    return value < info.dlpi_addr ? info.dlpi_addr + value : value;
  };
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    if (dynamic->d_tag == DT_SYMTAB) found.first = reinterpret_cast<const ElfW(Sym)*>(address(*dynamic));
    if (dynamic->d_tag == DT_GNU_HASH)
      found.count = count_by_gnu_hash(reinterpret_cast<const uint32_t*>(address(*dynamic)));
    if (dynamic->d_tag == DT_HASH && found.count == 0)
      found.count = reinterpret_cast<const uint32_t*>(address(*dynamic))[1];
  }
  return found.first == nullptr ? Symbols{} : found;
}

}  // namespace

// Under the loader's lock, so that the library stays.
std::vector<Functions::Function> Functions::read(const Image& image) {
  struct Request {
    const Image* image;
    std::vector<Function> functions;
  } request{&image, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        auto& wanted = *static_cast<Request*>(to);
        if (info->dlpi_addr != wanted.image->base) return 0;
        const Symbols symbols = symbols_of(*info);
        for (size_t i = 0; i < symbols.count; ++i) {
          const ElfW(Sym)& symbol = symbols.first[i];
          const unsigned type = ELF64_ST_TYPE(symbol.st_info);
          if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_NOTYPE)) continue;
          if (symbol.st_value >= std::numeric_limits<uint32_t>::max()) continue;
          wanted.functions.push_back({static_cast<uint32_t>(symbol.st_value),
                                      static_cast<uint32_t>(std::min<uint64_t>(symbol.st_size, 1u << 30))});
        }
        return 1;
      },
      &request);
  std::sort(request.functions.begin(), request.functions.end(),
            [](const Function& a, const Function& b) { return a.begin < b.begin; });
  return std::move(request.functions);
}

unwind::FunctionRange Functions::at(const Image& image, uintptr_t pc) {
  const auto [known, is_new] = of_image_.try_emplace(image.base);
  if (is_new) known->second = read(image);
  const std::vector<Function>& functions = known->second;
  const uint64_t at = pc - image.base;
  const auto after =
      std::upper_bound(functions.begin(), functions.end(), at,
                       [](uint64_t wanted, const Function& function) { return wanted < function.begin; });
  if (after == functions.begin()) return {};
  const Function& function = *std::prev(after);
  if (function.size != 0 && at >= uint64_t{function.begin} + function.size) return {};
  const uintptr_t begin = image.base + function.begin;
  const uintptr_t next = after == functions.end() ? image.end : image.base + after->begin;
  return {begin, function.size != 0 ? begin + function.size : next};
}

}  // namespace leadline::cpu
