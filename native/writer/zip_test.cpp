#include "writer/zip.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string>

#include "writer/crc32.h"
#include "writer/npy.h"

using namespace leadline;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string zip_of(std::uint64_t zip64_from) {
  char name[] = "/tmp/leadline_zip_XXXXXX";
  const int file = mkstemp(name);
  REQUIRE(file >= 0);
  unlink(name);
  ZipWriter zip(file, zip64_from);
  CHECK(zip.add("a.npy", "head", bytes_of("body")));
  CHECK(zip.add("empty", "", {}));
  CHECK(zip.finish());
  std::string content(zip.bytes(), '\0');
  CHECK(pread(file, content.data(), content.size(), 0) == static_cast<ssize_t>(content.size()));
  close(file);
  return content;
}

}  // namespace

TEST_CASE("CRC-32 of known texts, in one piece and in many") {
  CHECK(crc32("", 0) == 0);
  CHECK(crc32("123456789", 9) == 0xCBF43926u);
  const std::string text = "The quick brown fox jumps over the lazy dog";
  CHECK(crc32(text.data(), text.size()) == 0x414FA339u);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    CHECK(crc32(text.data() + cut, text.size() - cut, crc32(text.data(), cut)) == 0x414FA339u);
  }
}

TEST_CASE("A .npy header is a multiple of 64 bytes and says type and length") {
  for (const std::uint64_t rows : {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{12'345'678'901'234}}) {
    const std::string header = npy_header(npy_type<std::int16_t>(), rows);
    CHECK(header.size() % 64 == 0);
    CHECK(header.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
    CHECK(static_cast<unsigned char>(header[8]) + 256u * static_cast<unsigned char>(header[9]) == header.size() - 10);
    CHECK(header.find("'descr': '<i2'") != std::string::npos);
    CHECK(header.find("'shape': (" + std::to_string(rows) + ",)") != std::string::npos);
    CHECK(header.back() == '\n');
  }
  CHECK(npy_type<std::uint8_t>() == "|u1");
  CHECK(npy_type<std::uint64_t>() == "<u8");
  CHECK(npy_type<double>() == "<f8");
}

TEST_CASE("Members are stored as they are; ZIP64 records appear only from the given size on") {
  const std::string plain = zip_of(0xFFFFFFFFu);
  CHECK(plain.substr(0, 4) == "PK\x03\x04");
  CHECK(plain.find("a.npyheadbody") == 30);
  CHECK(plain.find("PK\x06\x06") == std::string::npos);
  CHECK(plain.substr(plain.size() - 22, 4) == "PK\x05\x06");
  const std::string large = zip_of(1);
  CHECK(large.find("PK\x06\x06") != std::string::npos);
  CHECK(large.find("PK\x06\x07") != std::string::npos);
}

TEST_CASE("A full device is reported") {
  const int file = open("/dev/full", O_WRONLY);
  REQUIRE(file >= 0);
  ZipWriter zip(file);
  CHECK_FALSE(zip.add("a", "x", {}));
  CHECK(zip.system_errno() == ENOSPC);
  CHECK_FALSE(zip.add("b", "y", {}));
  CHECK_FALSE(zip.finish());
  close(file);
}
