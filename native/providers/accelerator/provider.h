// Accelerators that files describe, as a provider of the session. Options of its own: `description`, a
// text as description.h says it. Answers `ok`, `message`, and what Details holds; `missing`: lines of library, tab,
// function that the library does not have; `libraries`: paths, one a line.
#pragma once

#include "providers/provider.h"

namespace leadline::accelerator {

leadline::Provider& session_provider();

}  // namespace leadline::accelerator
