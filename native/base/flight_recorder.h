// The last collectives of this process in a mapped file, which whoever kills the process leaves behind.
//
// A collective costs a few hundred nanoseconds here and at least microseconds elsewhere; nothing else is recorded, so
// operators pay nothing. begin() and what follows may be called from any thread: they neither lock nor allocate.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace leadline {

class FlightRecorder {
 public:
  static constexpr std::uint32_t kEntries = 256;
  static constexpr std::uint32_t kGroups = 256;
  static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};
  static constexpr std::uint64_t kNotSaid = kUnknown - 1;
  static constexpr char kMagic[8] = {'L', 'D', 'L', 'F', 'L', 'T', '0', '2'};

  // The file, in the order of its parts; leadline/profiles/flight.py reads it. Times are CLOCK_MONOTONIC.
  struct Header {
    char magic[8];
    std::uint32_t entries;
    std::uint32_t groups;
    std::uint32_t pid;
    std::uint32_t unused;
    std::int64_t realtime_ns;   // of one moment
    std::int64_t monotonic_ns;  // the same moment
    std::atomic<std::uint64_t> begun;
  };
  struct Group {
    std::atomic<std::uint64_t> key;    // 0: free
    std::atomic<std::uint64_t> begun;  // collectives of this process, also those that the ring holds no more
    std::atomic<std::uint64_t> done;   // that have ended, where somebody tells
    // Collectives of it that had begun before this process was measured; kUnknown: nobody could tell. Of messages: of
    // the group that they are sent in.
    std::uint64_t since;
    std::atomic<std::uint64_t> told;  // the number of its last one, as torch counts; kUnknown: torch does not say
    std::uint32_t size;
    std::uint32_t rank;
    char name[48];
    char description[48];
  };
  struct Entry {
    std::atomic<std::uint64_t> number;  // from 1; 0: nothing; all bits: it is being written
    std::int64_t begin_ns;
    std::atomic<std::int64_t> returned_ns;  // to its caller; 0: not yet
    std::atomic<std::int64_t> done_ns;      // 0: not yet, or nobody tells
    std::uint64_t tid;
    std::atomic<std::uint64_t> sequence;  // in its group, from 1; 0: of no group that is known
    std::atomic<std::uint32_t> group;     // row in the table of groups
    std::uint32_t unused;
    std::int64_t elements;  // that go in; -1: unknown
    char collective[48];
  };
  static constexpr std::size_t kBytes = 4096 + sizeof(Group) * kGroups + sizeof(Entry) * kEntries;

  // Where the file is made when the first collective begins; empty: nowhere. What was recorded before stays in its
  // file; groups go on counting, since ranks change their files at different moments. One thread at a time.
  void set_path(std::string_view path) noexcept;
  bool is_open() const noexcept { return file_.load(std::memory_order_acquire) != nullptr; }

  struct Where {
    std::string_view group;
    std::string_view description;
    std::uint32_t size = 0;
    std::uint32_t rank = 0;
    std::int64_t elements = -1;
    std::string_view collective;     // a better name than the one it began with; empty for none
    std::uint64_t since = kNotSaid;  // as in Group; counts when the group is met first
  };
  // The group of the next collective that this thread begins, where its operator will not say. Texts are copied.
  static void announce(const Where& where) noexcept;
  // The collective of the last announcement; 0: it was none. Nothing is announced any more. `told`: as in Group.
  std::uint64_t announced(std::uint64_t told) noexcept;
  // The group of those that nobody announces: the only one that the process has. Empty: unknown.
  void set_usual(const Where& where) noexcept;
  // The process was measured from outside, at any moment: `since` is unknown where nobody says it. Else it is 0.
  void set_attached(bool attached) noexcept { attached_.store(attached, std::memory_order_relaxed); }

  // 0: nothing is recorded.
  std::uint64_t begin(std::string_view collective) noexcept;
  // Of what has a group already, only what that leaves open; what has been overwritten meanwhile is left alone.
  void describe(std::uint64_t number, const Where& where) noexcept;
  void returned(std::uint64_t number) noexcept;
  void done(std::uint64_t number) noexcept;
  // How long ago the last collective began, where one of those that are kept has not ended as far as anybody has told;
  // else 0.
  std::int64_t standing_ns() const noexcept;

 private:
  char* opened() noexcept;
  char* make() noexcept;
  char* file() const noexcept { return file_.load(std::memory_order_acquire); }
  static Group* groups_of(char* file) noexcept { return reinterpret_cast<Group*>(file + 4096); }
  static Entry* entries_of(char* file) noexcept {
    return reinterpret_cast<Entry*>(file + 4096 + sizeof(Group) * kGroups);
  }
  Entry* entry(std::uint64_t number) const noexcept;
  std::uint32_t find_group(char* file, const Where& where) noexcept;

  std::atomic<char*> file_{nullptr};
  std::atomic<bool> wanted_{false};  // a path is set, and nobody has tried it
  char* before_ = nullptr;           // the mapping of the path before: a thread may still be inside a call
  char path_[4096] = {};
  struct Named {
    char name[48];
    char description[48];
    std::uint32_t size;
    std::uint32_t rank;
    std::uint64_t since;
  };
  std::atomic<const Named*> usual_{nullptr};
  std::atomic<bool> attached_{false};
};

// That of this process.
FlightRecorder& flight_recorder() noexcept;

}  // namespace leadline
