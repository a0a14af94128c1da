// The Compute Sanitizer's API library, found at run time.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "backends/sanitizer/sanitizer_abi.h"
#include "base/library.h"

namespace leadline::sanitizer {

class SanitizerLibrary {
 public:
  // The first of `candidates` that opens and has every function; otherwise nullopt and one sentence.
  static std::optional<SanitizerLibrary> open(std::span<const std::string> candidates, std::string* error);

  const abi::Functions& functions() const noexcept { return functions_; }
  const std::string& path() const noexcept { return path_; }
  // From 13.5 on patches of asynchronous copies are told how many bytes are filled with zeros.
  bool tells_filled() const noexcept { return tells_filled_; }
  // The vendor's words for a result, and its number.
  std::string words(abi::Result result) const;

 private:
  abi::Functions functions_{};
  std::string path_;
  bool tells_filled_ = false;
};

}  // namespace leadline::sanitizer
