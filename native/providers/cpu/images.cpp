#include "providers/cpu/images.h"

#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "unwind/rule_cache.h"

namespace leadline::cpu {
namespace {

std::string hexadecimal(const unsigned char* bytes, size_t count) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text.push_back(kDigits[bytes[i] >> 4]);
    text.push_back(kDigits[bytes[i] & 15]);
  }
  return text;
}

// The note of type NT_GNU_BUILD_ID in a segment of notes.
std::string build_id_in(const unsigned char* notes, size_t size) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head;
    std::memcpy(&head, notes, sizeof head);
    const size_t name = (size_t{head.n_namesz} + 3) & ~size_t{3};
    const size_t rest = (size_t{head.n_descsz} + 3) & ~size_t{3};
    if (size < sizeof head + name + rest) return {};
    const unsigned char* const body = notes + sizeof head;
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && std::memcmp(body, "GNU", 4) == 0)
      return hexadecimal(body + name, head.n_descsz);
    notes += sizeof head + name + rest;
    size -= sizeof head + name + rest;
  }
  return {};
}

std::string own_program() {
  char path[4096];
  const ssize_t got = readlink("/proc/self/exe", path, sizeof path);
  return got > 0 ? std::string(path, static_cast<size_t>(got)) : std::string();
}

int add_image(dl_phdr_info* info, size_t, void* to) {
  Image image;
  image.base = info->dlpi_addr;
  image.begin = ~uintptr_t{0};
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const uintptr_t at = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD) {
      image.begin = std::min(image.begin, at);
      image.end = std::max(image.end, at + part.p_memsz);
    } else if (part.p_type == PT_NOTE && image.build_id.empty()) {
      image.build_id = build_id_in(reinterpret_cast<const unsigned char*>(at), part.p_memsz);
    }
  }
  image.path = info->dlpi_name;
  // As the program named it; who reads the profile stands elsewhere. The kernel's own page has no folder.
  if (image.path.find('/') != std::string::npos && image.path.front() != '/') {
    char whole[PATH_MAX];
    if (realpath(image.path.c_str(), whole) != nullptr) image.path = whole;
  }
  if (image.end != 0) static_cast<std::vector<Image>*>(to)->push_back(std::move(image));
  return 0;
}

}  // namespace

std::string name_in(const Image& image, uintptr_t address) {
  char text[64];
  snprintf(text, sizeof text, "+0x%llx", static_cast<unsigned long long>(address - image.base));
  const size_t slash = image.path.rfind('/');
  return (slash == std::string::npos ? image.path : image.path.substr(slash + 1)) + text;
}

void Images::list() {
  images_.clear();
  dl_iterate_phdr(add_image, &images_);
  // The program itself is the only one without a name that is no part of the kernel.
  if (!images_.empty()) program_ = images_.front().begin;
  if (!images_.empty() && images_.front().path.empty()) images_.front().path = own_program();
  std::sort(images_.begin(), images_.end(), [](const Image& a, const Image& b) { return a.begin < b.begin; });
}

const Image* Images::among_known(uintptr_t pc) const noexcept {
  const auto after = std::upper_bound(images_.begin(), images_.end(), pc,
                                      [](uintptr_t wanted, const Image& image) { return wanted < image.begin; });
  if (after == images_.begin()) return nullptr;
  const Image& image = *std::prev(after);
  return pc < image.end ? &image : nullptr;
}

const Image* Images::find(uintptr_t pc) {
  if (const Image* const known = among_known(pc)) return known;
  const uint64_t changes = unwind::library_changes();
  if (changes == changes_) return nullptr;
  changes_ = changes;
  list();
  return among_known(pc);
}

}  // namespace leadline::cpu
