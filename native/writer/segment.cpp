#include "writer/segment.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "writer/npy.h"
#include "writer/snapshot.h"
#include "writer/zip.h"

namespace leadline {
namespace {

// A file that disappears again unless it takes the place of another.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string path) noexcept
      : path_(std::move(path)), descriptor_(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {}
  ~TemporaryFile() {
    const bool made = descriptor_ >= 0 || closed_;
    close();
    if (made && !renamed_) unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int descriptor() const noexcept { return descriptor_; }

  // False when data written before could not be kept; network file systems tell it only here.
  bool close() noexcept {
    if (descriptor_ < 0) return true;
    closed_ = true;
    return ::close(std::exchange(descriptor_, -1)) == 0 || errno == EINTR;
  }

  bool rename_to(const std::string& path) noexcept {
    renamed_ = std::rename(path_.c_str(), path.c_str()) == 0;
    return renamed_;
  }

 private:
  std::string path_;
  int descriptor_;
  bool closed_ = false;
  bool renamed_ = false;
};

// A write beyond RLIMIT_FSIZE raises SIGXFSZ, which would end the program: held back on this thread and then taken
// away, so that the write fails with EFBIG like any other.
class WithoutFileSizeSignal {
 public:
  WithoutFileSizeSignal() noexcept {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~WithoutFileSizeSignal() {
    const timespec at_once{0, 0};
    while (sigtimedwait(&signals_, nullptr, &at_once) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutFileSizeSignal(const WithoutFileSizeSignal&) = delete;
  WithoutFileSizeSignal& operator=(const WithoutFileSizeSignal&) = delete;

 private:
  sigset_t signals_{};
  sigset_t before_{};
};

template <class Table>
bool write_table(ZipWriter& zip, const Table& table) {
  bool good = true;
  table.for_each_column([&](std::string_view column, const auto& values) {
    if (!good) return;
    using Value = typename std::remove_cvref_t<decltype(values)>::value_type;
    const std::string name = std::string(table.kName) + "." + std::string(column) + ".npy";
    good = zip.add(name, npy_header(npy_type<Value>(), values.size()), std::as_bytes(std::span(values)));
  });
  return good;
}

// A file of what `tables` adds; it takes the place of `path` when it is whole.
template <class Tables>
WriteResult write_file(const std::string& path, const Tables& tables) {
  WriteResult result;
  const auto fail = [&](WriteError error, int system_errno) {
    result.error = error;
    result.system_errno = system_errno;
    return result;
  };
  const WithoutFileSizeSignal guard;
  TemporaryFile file(path + ".tmp");
  if (file.descriptor() < 0) return fail(WriteError::kOpen, errno);
  ZipWriter zip(file.descriptor());
  if (!tables(zip) || !zip.finish()) return fail(WriteError::kWrite, zip.system_errno());
  if (!file.close()) return fail(WriteError::kWrite, errno);
  if (!file.rename_to(path)) return fail(WriteError::kRename, errno);
  result.bytes = zip.bytes();
  return result;
}

WriteResult write_tables(const std::string& path, const Snapshot& snapshot) {
  WriteResult result = write_file(path, [&](ZipWriter& zip) {
    bool good = true;
    snapshot.for_each_table([&](const auto& table) { good = good && write_table(zip, table); });
    return good;
  });
  result.nodes = static_cast<std::uint32_t>(snapshot.nodes.parent.size());
  return result;
}

std::string reason(int system_errno) {
  char text[256] = "";
  return strerror_r(system_errno, text, sizeof text);  // GNU's: returns the text
}

}  // namespace

std::string describe(const WriteResult& result, const std::string& path) {
  switch (result.error) {
    case WriteError::kNone:
      return {};
    case WriteError::kOpen:
      return "the segment " + path + " could not be created (" + reason(result.system_errno) +
             "); choose an output directory that can be written";
    case WriteError::kWrite:
      return "the segment " + path + " could not be written (" + reason(result.system_errno) +
             "); make room on the disk or choose another output directory";
    case WriteError::kRename:
      return "the segment " + path + " was written but could not be put in its place (" + reason(result.system_errno) +
             "); check that the output directory still exists";
    case WriteError::kOutOfMemory:
      return "the segment " + path +
             " was not written because memory is short; what was measured is kept for the next one";
  }
  return {};
}

std::string beside_segment(const std::string& segment_path, std::string_view end) {
  constexpr std::string_view kEnd = ".segment";
  const bool ends = segment_path.ends_with(kEnd);
  return segment_path.substr(0, segment_path.size() - (ends ? kEnd.size() : 0)).append(end);
}

std::string events_path(const std::string& segment_path) { return beside_segment(segment_path, ".events"); }

// What stays from one segment to the next.
struct SegmentWriter::Kept {
  Kept(const SegmentSources& sources, const std::string& written_to)
      : trees(&sources.trees), path(written_to), tree(sources.trees, sources.compiled) {}
  const TreeRegistry* trees;
  std::string path;
  MergedTree tree;
  std::optional<std::uint64_t> events;  // what changes() said before those in the file were read
};

SegmentWriter::SegmentWriter() = default;
SegmentWriter::~SegmentWriter() = default;

void SegmentWriter::clear() noexcept {
  kept_.reset();
  held_bytes_.store(0, std::memory_order_relaxed);
}

WriteResult SegmentWriter::write_files(const std::string& path, const SegmentSources& sources, bool whole) {
  if (kept_ == nullptr || kept_->trees != &sources.trees || kept_->path != path) {
    kept_ = std::make_unique<Kept>(sources, path);
    // Its nodes would be named by numbers that are no longer theirs.
    unlink(events_path(path).c_str());
  }
  const bool opened = sources.events != nullptr && sources.events->was_opened();
  const std::uint64_t changes = opened ? sources.events->changes() : 0;
  const bool changed = opened && (whole || kept_->events != changes);
  Snapshot snapshot = take_snapshot(kept_->tree, sources, changed ? WithEvents::kYes : WithEvents::kNo);
  held_bytes_.store(kept_->tree.held_bytes(), std::memory_order_relaxed);
  std::optional<EventTable> apart;
  if (!whole) apart = std::exchange(snapshot.events, std::nullopt);
  WriteResult result = write_tables(path, snapshot);
  if (!result) return result;
  if (whole) {
    if (kept_->events) unlink(events_path(path).c_str());
    kept_->events.reset();
  } else if (apart) {
    const WriteResult beside = write_file(events_path(path), [&](ZipWriter& zip) { return write_table(zip, *apart); });
    if (!beside) return beside;
    kept_->events = changes;
    result.bytes += beside.bytes;
  }
  return result;
}

WriteResult SegmentWriter::write(const std::string& path, const SegmentSources& sources, bool whole) noexcept {
  WriteResult result;
  try {
    result = write_files(path, sources, whole);
  } catch (...) {  // only std::bad_alloc is thrown below; whatever it is must not reach the program
    result.error = WriteError::kOutOfMemory;
    clear();  // cut off in the middle of an update
  }
  if (!result) {
    try {
      sources.losses.count(LossKind::kWriteFailed, 1, describe(result, path));
    } catch (const std::bad_alloc&) {
      sources.losses.count(LossKind::kWriteFailed, 1, "memory is short");
    }
  }
  return result;
}

WriteResult write_segment(const std::string& path, const SegmentSources& sources) noexcept {
  SegmentWriter writer;
  return writer.write(path, sources, true);
}

}  // namespace leadline
