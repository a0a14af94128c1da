// The C++ library's demangler refuses names of more than 1,024 characters, which Composable Kernel's have: these are
// cut behind an argument of a template and closed, so that what stands in front can be read.
#pragma once

#include <string>
#include <string_view>

namespace leadline::gpu {

inline constexpr std::size_t kLongestName = 1024;

// A mangled name of a function `void f<the first arguments>(void)` of at most `most` characters; empty where the name
// has no template, or a form that is not known here. python/leadline/profiles/demangle.py does the same.
std::string cut_name(std::string_view mangled, std::size_t most = kLongestName);

}  // namespace leadline::gpu
