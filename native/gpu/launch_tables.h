// What a provider's callbacks write at launches and the fold reads when the records come.
#pragma once

#include "gpu/allocations.h"
#include "gpu/correlation_map.h"
#include "gpu/event_map.h"
#include "gpu/graph_map.h"

namespace leadline::gpu {

struct LaunchTables {
  CorrelationMap launches;
  GraphMap graphs;
  EventMap events;
  Allocations allocations;
};

}  // namespace leadline::gpu
