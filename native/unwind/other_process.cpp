#include "unwind/other_process.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "unwind/walker.h"

namespace leadline::unwind {
namespace {

constexpr size_t kMostFrames = 4096;
constexpr uint64_t kLargest = uint64_t{1} << 40;
constexpr size_t kMostParts = 256;

uint64_t page() noexcept {
  static const auto size = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return size;
}
uint64_t page_of(uint64_t address) noexcept { return address & ~(page() - 1); }
uint64_t whole_pages(uint64_t size) noexcept { return page_of(size + page() - 1); }

#if __SIZEOF_POINTER__ == 8
constexpr unsigned char kClass = ELFCLASS64;
#else
constexpr unsigned char kClass = ELFCLASS32;
#endif

bool read_parts(int file, std::vector<ElfW(Phdr)>* parts) {
  ElfW(Ehdr) head;
  if (pread(file, &head, sizeof head, 0) != static_cast<ssize_t>(sizeof head)) return false;
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != kClass) return false;
  if (head.e_phentsize != sizeof(ElfW(Phdr)) || head.e_phnum == 0 || head.e_phnum > kMostParts) return false;
  parts->resize(head.e_phnum);
  const auto size = static_cast<ssize_t>(parts->size() * sizeof(ElfW(Phdr)));
  return pread(file, parts->data(), static_cast<size_t>(size), static_cast<off_t>(head.e_phoff)) == size;
}

bool makes_sense(const ElfW(Phdr) & part, uint64_t file_bytes) noexcept {
  return part.p_filesz <= part.p_memsz && part.p_memsz <= kLargest && part.p_vaddr <= kLargest &&
         part.p_offset <= file_bytes && part.p_filesz <= file_bytes - part.p_offset &&
         part.p_offset % page() == part.p_vaddr % page();
}

}  // namespace

OtherProcess::~OtherProcess() {
  for (const File& file : files_) munmap(reinterpret_cast<void*>(file.here), file.end - file.begin);
}

bool OtherProcess::add(const std::string& path, uintptr_t address) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  struct stat about {};
  std::vector<ElfW(Phdr)> parts;
  const bool read = fstat(file, &about) == 0 && read_parts(file, &parts);
  uint64_t lowest = kLargest;
  uint64_t highest = 0;
  uint64_t index = 0;
  bool sane = read;
  for (const ElfW(Phdr) & part : parts) {
    if (part.p_type == PT_GNU_EH_FRAME) index = part.p_vaddr;
    if (part.p_type != PT_LOAD) continue;
    sane = sane && makes_sense(part, static_cast<uint64_t>(about.st_size));
    lowest = std::min<uint64_t>(lowest, page_of(part.p_vaddr));
    highest = std::max<uint64_t>(highest, part.p_vaddr + part.p_memsz);
  }
  sane = sane && lowest < highest && index >= lowest && index < highest;
  const uint64_t size = sane ? whole_pages(highest - lowest) : 0;
  void* const room =
      sane ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) : MAP_FAILED;
  if (room == MAP_FAILED) {
    close(file);
    return false;
  }
  const auto here = reinterpret_cast<uintptr_t>(room);
  for (const ElfW(Phdr) & part : parts) {
    if (part.p_type != PT_LOAD || part.p_filesz == 0) continue;
    const uint64_t before = part.p_vaddr - page_of(part.p_vaddr);
    mmap(reinterpret_cast<void*>(here + page_of(part.p_vaddr) - lowest), part.p_filesz + before, PROT_READ,
         MAP_PRIVATE | MAP_FIXED, file, static_cast<off_t>(part.p_offset - before));
  }
  close(file);
  files_.push_back({address, address + size, here, lowest, path, {here, here + size, here + index - lowest}});
  return true;
}

const OtherProcess::File* OtherProcess::find(uintptr_t pc) const noexcept {
  for (const File& file : files_) {
    if (pc >= file.begin && pc < file.end) return &file;
  }
  return nullptr;
}

const std::string* OtherProcess::file_of(uintptr_t address, uint64_t* in_file) const noexcept {
  const File* const file = find(address);
  if (file == nullptr) return nullptr;
  *in_file = address - file->begin + file->lowest;
  return &file->path;
}

struct OtherProcess::Where {
  const OtherProcess* process = nullptr;
  uintptr_t begin = 0;
  const unsigned char* stack = nullptr;

  Rule rule(uintptr_t pc) const noexcept {
    const File* const file = process->find(pc);
    return file == nullptr ? Rule{} : find_rule(pc - file->begin + file->here, file->sections);
  }
  uintptr_t word(uintptr_t address) const noexcept {
    uintptr_t value = 0;
    std::memcpy(&value, stack + (address - begin), sizeof value);
    return value;
  }
};

std::vector<NativeFrame> OtherProcess::walk(Registers from, const unsigned char* stack, size_t bytes, End* end) const {
  std::vector<NativeFrame> frames;
  *end = End::kBroken;
  if (from.sp % 8 != 0 || bytes < 8 || from.sp > UINTPTR_MAX - bytes) return frames;
  Walker<Where> walker(from, from.sp + bytes / 8 * 8, Where{this, from.sp, stack});
  *end = End::kFull;
  for (bool over = false; !over && frames.size() < kMostFrames;) {
    NativeFrame frame{walker.at().pc, walker.at().sp, 0};
    End why = End::kFull;
    frame.cfa = walker.step(&over, &why);
    if (over) *end = why;
    frames.push_back(frame);
  }
  return frames;
}

}  // namespace leadline::unwind
