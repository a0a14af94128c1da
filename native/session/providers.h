// The composition root: every provider of this build, in the order in which they start.
#pragma once

#include <string_view>
#include <vector>

#include "providers/provider.h"

namespace leadline {

// For the life of the process. Tests add their own before a session starts.
std::vector<Provider*>& providers();
// By name, or nullptr.
Provider* find_provider(std::string_view name);

}  // namespace leadline
