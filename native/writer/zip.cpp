// Layout after PKWARE's APPNOTE 6.3: local header + data per member, then the central directory and its end record(s).
#include "writer/zip.h"

#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "writer/crc32.h"

namespace leadline {
namespace {

constexpr std::uint16_t kVersion = 20;
constexpr std::uint16_t kVersionZip64 = 45;
constexpr std::uint16_t kUtf8Names = 1u << 11;
constexpr std::uint16_t kFirstDate = 0x21;  // 1 January 1980, the earliest there is
constexpr std::uint16_t kZip64Extra = 1;
constexpr std::uint32_t kInZip64 = 0xFFFFFFFFu;

class Record {
 public:
  Record& u16(std::uint64_t value) { return put(value, 2); }
  Record& u32(std::uint64_t value) { return put(value, 4); }
  Record& u64(std::uint64_t value) { return put(value, 8); }
  Record& text(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const noexcept { return bytes_; }

 private:
  Record& put(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xFF);
    return *this;
  }
  std::string bytes_;
};

}  // namespace

bool ZipWriter::add(std::string_view name, std::string_view head, std::span<const std::byte> body) {
  if (errno_ != 0) return false;
  std::uint32_t crc = crc32(head.data(), head.size());
  crc = crc32(body.data(), body.size(), crc);
  const std::uint64_t size = head.size() + body.size();
  const bool large = is_large(size);
  Record extra;
  if (large) extra.u16(kZip64Extra).u16(16).u64(size).u64(size);
  Record local;
  local.u32(0x04034b50).u16(large ? kVersionZip64 : kVersion).u16(kUtf8Names).u16(0).u16(0).u16(kFirstDate).u32(crc);
  local.u32(large ? kInZip64 : size).u32(large ? kInZip64 : size).u16(name.size()).u16(extra.bytes().size());
  local.text(name).text(extra.bytes());
  members_.push_back({std::string(name), crc, size, offset_});
  return write(local.bytes(), head, body);
}

bool ZipWriter::finish() {
  if (errno_ != 0) return false;
  const std::uint64_t directory_offset = offset_;
  Record directory;
  for (const Member& member : members_) {
    const bool large = is_large(member.size);
    const bool far = is_large(member.offset);
    Record extra;
    if (large || far) extra.u16(kZip64Extra).u16((large ? 16 : 0) + (far ? 8 : 0));
    if (large) extra.u64(member.size).u64(member.size);
    if (far) extra.u64(member.offset);
    const std::uint16_t version = large || far ? kVersionZip64 : kVersion;
    directory.u32(0x02014b50).u16(3 << 8 | version).u16(version).u16(kUtf8Names).u16(0).u16(0).u16(kFirstDate);
    directory.u32(member.crc).u32(large ? kInZip64 : member.size).u32(large ? kInZip64 : member.size);
    directory.u16(member.name.size()).u16(extra.bytes().size()).u16(0).u16(0).u16(0);
    directory.u32(std::uint32_t{0100644} << 16).u32(far ? kInZip64 : member.offset);
    directory.text(member.name).text(extra.bytes());
  }
  const std::uint64_t directory_bytes = directory.bytes().size();
  const std::uint64_t count = members_.size();
  Record end;
  if (is_large(directory_offset) || is_large(directory_bytes) || count >= 0xFFFF) {
    end.u32(0x06064b50).u64(44).u16(3 << 8 | kVersionZip64).u16(kVersionZip64).u32(0).u32(0);
    end.u64(count).u64(count).u64(directory_bytes).u64(directory_offset);
    end.u32(0x07064b50).u32(0).u64(directory_offset + directory_bytes).u32(1);
  }
  const std::uint64_t short_count = count >= 0xFFFF ? 0xFFFF : count;
  end.u32(0x06054b50).u16(0).u16(0).u16(short_count).u16(short_count);
  end.u32(is_large(directory_bytes) ? kInZip64 : directory_bytes);
  end.u32(is_large(directory_offset) ? kInZip64 : directory_offset).u16(0);
  return write(directory.bytes(), end.bytes(), {});
}

bool ZipWriter::write(std::string_view head, std::string_view middle, std::span<const std::byte> body) {
  const auto part = [](const void* data, std::size_t size) { return iovec{const_cast<void*>(data), size}; };
  std::array<iovec, 3> parts{part(head.data(), head.size()), part(middle.data(), middle.size()),
                             part(body.data(), body.size())};
  std::size_t first = 0;
  while (first < parts.size()) {
    if (parts[first].iov_len == 0) {
      ++first;
      continue;
    }
    const ssize_t written = writev(file_, &parts[first], static_cast<int>(parts.size() - first));
    if (written < 0) {
      if (errno == EINTR) continue;
      errno_ = errno;
      return false;
    }
    offset_ += static_cast<std::uint64_t>(written);
    auto left = static_cast<std::size_t>(written);
    for (; first < parts.size() && left >= parts[first].iov_len; ++first) left -= parts[first].iov_len;
    if (first < parts.size()) {
      parts[first].iov_base = static_cast<char*>(parts[first].iov_base) + left;
      parts[first].iov_len -= left;
    }
  }
  return true;
}

}  // namespace leadline
