// Several optimizers may end one step of training: what the framework's hooks tell the collector about their turns.
#pragma once

namespace leadline {

// Set on a thread where the optimizer's step that it is in takes its turn behind another one that has ended this step.
inline thread_local bool optimizer_follows = false;

}  // namespace leadline
