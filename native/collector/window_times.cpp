#include "collector/window_times.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <new>

namespace leadline {
namespace {

constexpr std::size_t kPageBytes = 4096;

class File {
 public:
  File(const std::string& path, int flags) noexcept : fd_(open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // Null where the file cannot be mapped.
  void* map() const noexcept {
    if (fd_ < 0) return nullptr;
    void* page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    return page == MAP_FAILED ? nullptr : page;
  }
  // Room on the disk is taken now: a full disk would otherwise be a SIGBUS at the first write.
  bool reserve() const noexcept { return fd_ >= 0 && posix_fallocate(fd_, 0, kPageBytes) == 0; }
  bool is_whole() const noexcept {
    struct stat about {};
    return fd_ >= 0 && fstat(fd_, &about) == 0 && about.st_size >= static_cast<off_t>(kPageBytes);
  }

 private:
  int fd_;
};

SharedTimes owned(WindowTimes* times) noexcept {
  if (times == nullptr) return nullptr;
  try {
    return {times, [](WindowTimes* mapped) { munmap(mapped, kPageBytes); }};
  } catch (const std::bad_alloc&) {
    return nullptr;  // shared_ptr has called the deleter
  }
}

}  // namespace

SharedTimes publish_times(const std::string& path) noexcept {
  // A zeroed page would be a window open since the clock's beginning, so the file gets its name when it is written.
  const std::string unfinished = path + ".new";
  const File file(unfinished, O_RDWR | O_CREAT | O_TRUNC);
  void* page = file.reserve() ? file.map() : nullptr;
  if (page == nullptr) {
    unlink(unfinished.c_str());
    return nullptr;
  }
  auto* times = new (page) WindowTimes();
  if (rename(unfinished.c_str(), path.c_str()) != 0) {
    munmap(page, kPageBytes);
    unlink(unfinished.c_str());
    return nullptr;
  }
  return owned(times);
}

SharedTimes published_times(const std::string& path) noexcept {
  const File file(path, O_RDWR);
  return file.is_whole() ? owned(static_cast<WindowTimes*>(file.map())) : nullptr;
}

}  // namespace leadline
