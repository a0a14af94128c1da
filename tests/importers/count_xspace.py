"""Writes beside each FILE.xplane.pb.gz what another reader counts in it, as FILE.counts.json: jaxlib's own (0.8 or later),
or with --tensorflow the protos of TensorFlow. Tests compare these with ours, and need neither.

    python count_xspace.py [--tensorflow] FILE...
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path

Event = tuple[str, int, dict[str, object]]
"""Name, how long it took in picoseconds, and what it says of itself."""


def by_jaxlib(data: bytes) -> Iterator[tuple[str, str, list[Event]]]:
    """Name of plane and line, and the events of it."""
    from jax.profiler import ProfileData

    for plane in ProfileData.from_serialized_xspace(data).planes:
        for line in plane.lines:
            events = [(event.name, round(event.duration_ns * 1000), dict(event.stats)) for event in line.events]
            yield plane.name, line.name, events


def by_tensorflow(data: bytes) -> Iterator[tuple[str, str, list[Event]]]:
    from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

    for plane in XSpace.FromString(data).planes:
        names = {key: one.name for key, one in plane.stat_metadata.items()}
        for line in plane.lines:
            events = []
            for event in line.events:
                stats: dict[str, object] = {}
                for stat in event.stats:
                    field = stat.WhichOneof("value")
                    value = getattr(stat, field) if field else None
                    stats[names[stat.metadata_id]] = names.get(value) if field == "ref_value" else value
                events.append((plane.event_metadata[event.metadata_id].name, event.duration_ps, stats))
            yield plane.name, line.name or line.display_name, events


def main() -> None:
    found = [argument for argument in sys.argv[1:] if argument != "--tensorflow"]
    for path in map(Path, found):
        lines, operations, kernels = [], {}, {}
        read = by_tensorflow if "--tensorflow" in sys.argv else by_jaxlib
        for plane, line, events in read(gzip.decompress(path.read_bytes())):
            lines.append([plane, line, len(events), sum(took for _, took, _ in events)])
            for name, took, stats in events:
                if plane.startswith("/host:CPU") and "hlo_op" in stats:
                    count, total = operations.get(str(stats["hlo_op"]), (0, 0))
                    operations[str(stats["hlo_op"])] = (count + 1, total + took)
                if plane.startswith("/device:GPU") and "kernel_details" in stats:
                    count, total = kernels.get(name, (0, 0))
                    kernels[name] = (count + 1, total + took)
        told = {"lines": sorted(lines), "operations": dict(sorted(operations.items()))}
        if kernels:
            told["kernels"] = dict(sorted(kernels.items()))
        place = path.with_name(path.name.removesuffix(".xplane.pb.gz") + ".counts.json")
        place.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


main()
