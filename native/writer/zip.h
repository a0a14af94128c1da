// Writes a ZIP of stored (uncompressed) members straight to a file descriptor, one member at a time.
//
// ZIP64 records appear only where a size or offset needs them. The same members give the same bytes: no dates, no
// owners.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leadline {

class ZipWriter {
 public:
  // `zip64_from`: sizes and offsets from here on are written as ZIP64; tests lower it. The descriptor stays the
  // caller's.
  explicit ZipWriter(int file, std::uint64_t zip64_from = 0xFFFFFFFFu) noexcept
      : file_(file), zip64_from_(zip64_from) {}

  // The member is `head` followed by `body`. False after any failed write; system_errno() tells why.
  bool add(std::string_view name, std::string_view head, std::span<const std::byte> body);

  // Writes the directory. Nothing may follow.
  bool finish();

  std::uint64_t bytes() const noexcept { return offset_; }
  int system_errno() const noexcept { return errno_; }

 private:
  struct Member {
    std::string name;
    std::uint32_t crc;
    std::uint64_t size;
    std::uint64_t offset;
  };
  bool write(std::string_view head, std::string_view middle, std::span<const std::byte> body);
  bool is_large(std::uint64_t value) const noexcept { return value >= zip64_from_; }

  int file_;
  std::uint64_t zip64_from_;
  std::uint64_t offset_ = 0;
  int errno_ = 0;
  std::vector<Member> members_;
};

}  // namespace leadline
