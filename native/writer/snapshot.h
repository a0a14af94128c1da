// One moment of the process as the tables of the file.
#pragma once

#include <optional>

#include "base/schema_generated.h"
#include "writer/event_table.h"
#include "writer/merged_tree.h"
#include "writer/segment.h"

namespace leadline {

struct Snapshot {
  tables::Strings strings;
  tables::Frames frames;
  tables::Nodes nodes;
  tables::Metrics metrics;
  tables::Processes processes;
  tables::Threads threads;
  tables::Devices devices;
  tables::Losses losses;
  std::optional<tables::OpenPlaces> open_places;  // only where threads are inside something
  std::optional<EventTable> events;               // only when there was a trace window
  std::optional<tables::OwnCost> own_cost;
  std::optional<tables::Steps> steps;  // only where steps ended
  std::optional<tables::StepWalls> step_walls;
  tables::MainThreads main_threads;

  // Calls f(table) for every table there is.
  template <class F>
  void for_each_table(F&& f) const {
    f(strings);
    f(frames);
    f(nodes);
    f(metrics);
    f(processes);
    f(threads);
    f(devices);
    f(losses);
    if (open_places) f(*open_places);
    if (events) f(*events);
    if (own_cost) f(*own_cost);
    if (steps) f(*steps);
    if (step_walls) f(*step_walls);
    f(main_threads);
  }
};

enum class WithEvents : bool { kNo, kYes };

// Throws std::bad_alloc, after which `tree` is of no use. May run while threads measure. `tree` is brought up to date;
// it is of the same trees as `sources`.
Snapshot take_snapshot(MergedTree& tree, const SegmentSources& sources, WithEvents events);
// With a tree of its own, and events.
Snapshot take_snapshot(const SegmentSources& sources);

}  // namespace leadline
