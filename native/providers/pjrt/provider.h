// Plug-ins of PJRT as a provider of the session. Options of its own: `table`, the address of a plug-in's table of
// functions, which start() may be given one after the other; `bytes`, whether to count what is copied (a vendor's
// provider may do that). Answers `ok`, `message`, and what was called.
#pragma once

#include "providers/provider.h"

namespace leadline::pjrt {

leadline::Provider& session_provider();

}  // namespace leadline::pjrt
