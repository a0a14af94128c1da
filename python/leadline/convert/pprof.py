"""pprof's profile.proto, gzipped: one sample per call path that measured something, with every additive metric as a
value.

Labels carry the thread, process and rank. A frame of the tree is a location with one line; its function is (name,
file). Format: `proto/profile.proto` of the pprof project; the field numbers below are its.
"""

from __future__ import annotations

import gzip
from functools import cached_property

from leadline.convert.request import Request
from leadline.convert.sinks import Sink
from leadline.convert.stacks import Weights, check_size_of_paths, chosen_metrics, frame_texts, main_metric, profile_name
from leadline.profiles import Profile, Tree
from leadline.schema import MetricInfo
from leadline.trace.protobuf import bytes_field, integer_field, packed_field

_MOST_LOCATIONS = 1 << 25
"""Over all samples. A tree of a million nodes, 30 levels deep, stays below; packing more takes tens of seconds."""
_UNITS = {"ns": "nanoseconds", "bytes": "bytes"}


def export(profile: Profile, request: Request, sink: Sink) -> None:
    """See `ExporterModule.export`; without `metric` every additive metric, and the number of operator calls."""
    message = _Writer(profile, request.metric).message()
    sink.write(gzip.compress(message, mtime=0))  # the same profile gives the same bytes


class _Strings:
    """pprof's string table: 0 is empty."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {"": 0}

    def __getitem__(self, text: str) -> int:
        return self.rows.setdefault(text, len(self.rows))

    def fields(self) -> bytes:
        return b"".join(bytes_field(6, text.encode("utf-8", "replace")) for text in self.rows)


class _Writer:
    def __init__(self, profile: Profile, metric: str | None) -> None:
        self._profile = profile
        self._tree: Tree = profile.tree
        self._strings = _Strings()
        self._metrics: list[MetricInfo] = chosen_metrics(self._tree, metric)
        self._with_calls = metric is None
        self._used: set[int] = set()

    def message(self) -> bytes:
        """The whole Profile message."""
        strings = self._strings
        types = [(str(info.kind), _UNITS.get(info.unit, "count")) for info in self._metrics]
        types += [("calls", "count")] if self._with_calls else []
        main = main_metric(self._metrics)
        parts = [bytes_field(1, self._value_type(*one)) for one in types]
        parts += self._samples()
        parts += self._locations_and_functions()
        started, wall = self._profile.meta.get("started_at_ns"), self._profile.meta.get("wall_ns")
        parts.append(integer_field(9, _whole(started)))
        parts.append(integer_field(10, _whole(wall)))
        parts.append(packed_field(13, [strings[f"leadline profile of {profile_name(self._profile)}"]]))
        if main is not None:
            parts.append(integer_field(14, strings[str(main.kind)]))
        return b"".join(parts) + strings.fields()

    def _value_type(self, name: str, unit: str) -> bytes:
        return integer_field(1, self._strings[name]) + integer_field(2, self._strings[unit])

    def _samples(self) -> list[bytes]:
        tree = self._tree
        parent, frame_of = tree.parent.tolist(), tree.frame_of.tolist()
        columns = [Weights(tree, info).own for info in self._metrics]
        if self._with_calls:
            columns.append(tree.exclusive("call_time").count.tolist())
        measured = (any(values) for values in zip(*columns, strict=True))
        check_size_of_paths(tree, measured, [1] * len(tree.frames["kind"]), _MOST_LOCATIONS)
        made = []
        for row in range(1, len(tree)):
            values = [column[row] for column in columns]
            if not any(values):
                continue
            locations = []
            labels = b""
            at = row
            while at > 0:
                locations.append(frame_of[at] + 1)
                labels += self._labels.get(at, b"")
                at = parent[at]
            self._used.update(locations)
            made.append(bytes_field(2, packed_field(1, locations) + packed_field(2, values) + labels))
        return made

    @cached_property
    def _labels(self) -> dict[int, bytes]:
        """Labels that the nodes of threads and processes put on every path through them."""
        labels: dict[int, bytes] = {}
        for thread in self._profile.threads:
            text = self._text_label("thread", thread.name) if thread.name else b""
            labels[thread.node.row] = text + self._number_label("thread_id", thread.tid)
        for process in self._profile.processes:
            text = self._number_label("process_id", process.pid)
            labels[process.node.row] = text + (
                self._text_label("rank", str(process.rank)) if process.rank >= 0 else b""
            )
        return labels

    def _text_label(self, key: str, value: str) -> bytes:
        return bytes_field(3, integer_field(1, self._strings[key]) + integer_field(2, self._strings[value]))

    def _number_label(self, key: str, value: int) -> bytes:
        return bytes_field(3, integer_field(1, self._strings[key]) + integer_field(3, value))

    def _locations_and_functions(self) -> list[bytes]:
        """Locations of the frames used, and the functions they are in; ids begin at 1."""
        strings = self._strings
        functions: dict[tuple[str, str], int] = {}
        first_lines: dict[int, int] = {}
        parts = []
        for frame, text in enumerate(frame_texts(self._tree)):
            if frame + 1 not in self._used:
                continue
            function = functions.setdefault((text.label, text.file), len(functions) + 1)
            first_lines.setdefault(function, text.first_line)
            line = integer_field(1, function) + integer_field(2, text.line)
            parts.append(bytes_field(4, integer_field(1, frame + 1) + bytes_field(4, line)))
        for (label, file), function in functions.items():
            name = strings[label]
            fields = integer_field(1, function) + integer_field(2, name) + integer_field(3, name)
            fields += integer_field(4, strings[file]) + integer_field(5, first_lines[function])
            parts.append(bytes_field(5, fields))
        return parts


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63 else 0
