#include "base/got_patch.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "base/library.h"

namespace leadline {
namespace {

#if defined(__x86_64__)
constexpr ElfW(Word) kJumpSlot = R_X86_64_JUMP_SLOT;
constexpr ElfW(Word) kGlobalData = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr ElfW(Word) kJumpSlot = R_AARCH64_JUMP_SLOT;
constexpr ElfW(Word) kGlobalData = R_AARCH64_GLOB_DAT;
#else
#error "GotPatch knows the relocations of x86-64 and aarch64 only"
#endif

struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool contains(const void* address) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= begin && at < end;
  }
};

// What the dynamic section of one loaded library says.
struct Image {
  std::uintptr_t base = 0;
  Range mapped;
  Range relro;
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const ElfW(Rela) * plt = nullptr;
  std::size_t plt_count = 0;
  const ElfW(Rela) * data = nullptr;
  std::size_t data_count = 0;
};

std::optional<Image> read_image(const dl_phdr_info& info) noexcept {
  Image image;
  image.base = info.dlpi_addr;
  image.mapped.begin = ~std::uintptr_t{0};
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const auto& header = info.dlpi_phdr[i];
    const std::uintptr_t begin = info.dlpi_addr + header.p_vaddr;
    const std::uintptr_t end = begin + header.p_memsz;
    if (header.p_type == PT_LOAD) {
      image.mapped.begin = begin < image.mapped.begin ? begin : image.mapped.begin;
      image.mapped.end = end > image.mapped.end ? end : image.mapped.end;
    } else if (header.p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
    } else if (header.p_type == PT_GNU_RELRO) {
      // The loader protects whole pages only.
      const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
      image.relro = {begin & ~(page - 1), end & ~(page - 1)};
    }
  }
  if (dynamic == nullptr) return std::nullopt;
  // The loader has put addresses in place of offsets, except where the section is read-only.
  const auto address = [&](const ElfW(Dyn) * entry) {
    const std::uintptr_t value = entry->d_un.d_ptr;
    return value < image.base ? image.base + value : value;
  };
  bool plt_is_rela = true;
  std::size_t relative = 0;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        image.symbols = reinterpret_cast<const ElfW(Sym)*>(address(dynamic));
        break;
      case DT_STRTAB:
        image.strings = reinterpret_cast<const char*>(address(dynamic));
        break;
      case DT_JMPREL:
        image.plt = reinterpret_cast<const ElfW(Rela)*>(address(dynamic));
        break;
      case DT_PLTRELSZ:
        image.plt_count = dynamic->d_un.d_val / sizeof(ElfW(Rela));
        break;
      case DT_PLTREL:
        plt_is_rela = dynamic->d_un.d_val == DT_RELA;
        break;
      case DT_RELA:
        image.data = reinterpret_cast<const ElfW(Rela)*>(address(dynamic));
        break;
      case DT_RELASZ:
        image.data_count = dynamic->d_un.d_val / sizeof(ElfW(Rela));
        break;
      case DT_RELACOUNT:
        relative = dynamic->d_un.d_val;
        break;
      default:
        break;
    }
  }
  if (image.symbols == nullptr || image.strings == nullptr) return std::nullopt;
  if (image.plt == nullptr || !plt_is_rela) image.plt_count = 0;
  if (image.data == nullptr) image.data_count = 0;
  // The first ones name no symbol. In libtorch they are many megabytes that nobody has touched since it was loaded.
  const std::size_t without_symbol = std::min(relative, image.data_count);
  image.data += without_symbol;
  image.data_count -= without_symbol;
  return image;
}

// Writes a table entry that may lie in a page the loader has made read-only. False when the page cannot be made
// writable.
bool write_entry(void** entry, void* value, bool read_only) noexcept {
  const auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  void* page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(entry) & ~(page_bytes - 1));
  if (read_only && mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(entry, value, __ATOMIC_RELEASE);
  if (read_only) mprotect(page, page_bytes, PROT_READ);
  return true;
}

// The function's address by name, for when the tables held only stubs of lazy binding.
void* find_function(const char* symbol, void* replacement) {
  void* found = dlsym(RTLD_DEFAULT, symbol);
  if (found != nullptr && found != replacement) return found;
  for (const LoadedLibrary& library : loaded_libraries()) {
    if (library.path.empty()) continue;
    void* handle = dlopen(library.path.c_str(), RTLD_NOLOAD | RTLD_NOW);
    if (handle == nullptr) continue;
    found = dlsym(handle, symbol);
    dlclose(handle);
    if (found != nullptr && found != replacement) return found;
  }
  return nullptr;
}

// Which memory may be written to, as the kernel says when it is asked first.
class WritablePages {
 public:
  bool writable(const void* address) {
    if (!read_) read();
    const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), address, [](const void* at, const Range& one) {
      return reinterpret_cast<std::uintptr_t>(at) < one.begin;
    });
    return after != ranges_.begin() && std::prev(after)->contains(address);
  }

 private:
  void read() {
    read_ = true;
    FILE* const maps = std::fopen("/proc/self/maps", "re");
    if (maps == nullptr) return;
    char line[512];
    bool begins = true;  // long lines come in pieces
    while (std::fgets(line, sizeof line, maps) != nullptr) {
      Range range;
      char write = '-';
      if (begins && std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*c%c", &range.begin, &range.end, &write) == 3 &&
          write == 'w')
        ranges_.push_back(range);
      begins = std::strchr(line, '\n') != nullptr;
    }
    std::fclose(maps);
  }

  std::vector<Range> ranges_;  // ascending
  bool read_ = false;
};

// Calls f(dl_phdr_info) for each library, under the loader's lock: none can be unloaded meanwhile.
template <class F>
void for_each_library(const F& f) {
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        (*static_cast<const F*>(data))(*info);
        return 0;
      },
      const_cast<F*>(&f));
}

}  // namespace

GotPatch GotPatch::install(const char* symbol, void* replacement,
                           const std::function<bool(std::string_view path)>& wanted, const Entries& only) {
  GotPatch patch;
  patch.replacement_ = replacement;
  WritablePages pages;
  const auto patch_library = [&](const dl_phdr_info& info) {
    try {
      if (!wanted(info.dlpi_name != nullptr ? info.dlpi_name : "")) return;
      const std::optional<Image> image = read_image(info);
      if (!image) return;
      const auto patch_entries = [&](const ElfW(Rela) * entries, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
          const auto type = static_cast<ElfW(Word)>(ELF64_R_TYPE(entries[i].r_info));
          if (type != kJumpSlot && type != kGlobalData) continue;
          const ElfW(Sym)& named = image->symbols[ELF64_R_SYM(entries[i].r_info)];
          if (std::strcmp(image->strings + named.st_name, symbol) != 0) continue;
          auto** entry = reinterpret_cast<void**>(image->base + entries[i].r_offset);
          void* previous = __atomic_load_n(entry, __ATOMIC_ACQUIRE);
          if (previous == replacement || previous == nullptr) continue;
          if (only.bound_to != nullptr && previous != only.bound_to) {
            // Lazy binding leaves a stub of the library itself; another definition of the name is somebody else's.
            if (!only.unbound || type != kJumpSlot || !image->mapped.contains(previous)) continue;
          }
          const Slot slot{entry, previous, image->base, image->relro.contains(entry)};
          // Another thread is loading this library: the loader will add to an offset that stands here, and it writes
          // into these pages until it makes them read-only. Valgrind loads libraries at addresses as low as offsets.
          const bool is_offset = reinterpret_cast<std::uintptr_t>(previous) < image->mapped.end - image->mapped.begin &&
                                 !image->mapped.contains(previous);
          if (is_offset || (slot.read_only && pages.writable(entry))) {
            ++patch.loading_;
            continue;
          }
          patch.slots_.push_back(slot);
          if (!write_entry(entry, replacement, slot.read_only)) {
            patch.slots_.pop_back();
            ++patch.failed_;
            continue;
          }
          // An address inside the same library is the stub that would bind, and thereby undo, this very entry.
          if (patch.original_ == nullptr && !image->mapped.contains(previous)) patch.original_ = previous;
        }
      };
      patch_entries(image->plt, image->plt_count);
      patch_entries(image->data, image->data_count);
    } catch (...) {  // must not cross the loader's C frames; only memory can be short here, or `wanted` failed
      ++patch.failed_;
    }
  };
  for_each_library(patch_library);
  if (only.bound_to != nullptr) patch.original_ = const_cast<void*>(only.bound_to);
  if (patch.original_ == nullptr && !patch.slots_.empty()) {
    patch.original_ = find_function(symbol, replacement);
    if (patch.original_ == nullptr) patch.restore();  // the replacement would have nothing to call
  }
  return patch;
}

void GotPatch::restore() noexcept {
  const auto restore_library = [this](const dl_phdr_info& info) {
    const std::optional<Image> image = read_image(info);
    if (!image) return;
    for (const Slot& slot : slots_) {
      if (slot.library_base != image->base || !image->mapped.contains(slot.address)) continue;
      if (__atomic_load_n(slot.address, __ATOMIC_ACQUIRE) != replacement_) continue;
      write_entry(slot.address, slot.previous, slot.read_only);
    }
  };
  if (!slots_.empty()) for_each_library(restore_library);
  slots_.clear();
}

GotPatch::GotPatch(GotPatch&& other) noexcept
    : slots_(std::exchange(other.slots_, {})),
      replacement_(other.replacement_),
      original_(other.original_),
      failed_(other.failed_),
      loading_(other.loading_) {}

GotPatch& GotPatch::operator=(GotPatch&& other) noexcept {
  if (this != &other) {
    restore();
    slots_ = std::exchange(other.slots_, {});
    replacement_ = other.replacement_;
    original_ = other.original_;
    failed_ = other.failed_;
    loading_ = other.loading_;
  }
  return *this;
}

GotPatch::~GotPatch() { restore(); }

}  // namespace leadline
