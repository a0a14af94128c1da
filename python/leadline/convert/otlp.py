"""OpenTelemetry profiles (OTLP, `v1development`): one profile for each additive metric, over one shared dictionary.

The bytes are an ExportProfilesServiceRequest and a ProfilesData alike: a collector takes them with POST at
/v1development/profiles. The signal is in development and its fields still change: the numbers below are those of
opentelemetry-proto 1.45, against whose own messages the tests read what is written here.
"""

from __future__ import annotations

import hashlib

from leadline._version import __version__
from leadline.convert.request import Request
from leadline.convert.sinks import Sink
from leadline.convert.stacks import Weights, check_size_of_paths, chosen_metrics, frame_texts, profile_name
from leadline.profiles import Profile
from leadline.trace.protobuf import bytes_field, fixed64_field, integer_field, packed_field, text_field

PROTO = "1.45"
_MOST_LOCATIONS = 1 << 25
_UNITS = {"ns": "nanoseconds", "bytes": "bytes"}


def export(profile: Profile, request: Request, sink: Sink) -> None:
    """See `ExporterModule.export`; without `metric` every additive metric."""
    sink.write(_Writer(profile).message(request.metric))


class _Table:
    """A table of the dictionary: equal entries are one, and entry 0 is the empty one."""

    def __init__(self, field: int) -> None:
        self._field = field
        self._rows: dict[bytes, int] = {b"": 0}

    def add(self, entry: bytes) -> int:
        return self._rows.setdefault(entry, len(self._rows))

    def fields(self) -> bytes:
        return b"".join(bytes_field(self._field, entry) for entry in self._rows)


class _Writer:
    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._tree = profile.tree
        tables = [_Table(field) for field in range(1, 8)]
        self._tables = tables
        _, self._locations, self._functions, _, self._strings, self._attributes, self._stacks = tables

    def message(self, metric: str | None) -> bytes:
        """The whole request."""
        stacks, attributes = self._paths(metric)
        profiles = b""
        for info in chosen_metrics(self._tree, metric):
            values = Weights(self._tree, info).own
            samples = b"".join(
                bytes_field(2, integer_field(1, stack) + packed_field(2, attributes[row]) + packed_field(4, [value]))
                for row, stack in stacks.items()
                if (value := values[row])
            )
            profiles += bytes_field(2, self._profile_head(str(info.kind), _UNITS.get(info.unit, "1")) + samples)
        scope = bytes_field(1, text_field(1, "leadline") + text_field(2, __version__)) + profiles
        resource = bytes_field(1, self._resource()) + bytes_field(2, scope)
        dictionary = b"".join(table.fields() for table in self._tables)
        return bytes_field(1, resource) + bytes_field(2, dictionary)

    def _profile_head(self, name: str, unit: str) -> bytes:
        meta = self._profile.meta
        kind = integer_field(1, self._string(name)) + integer_field(2, self._string(unit))
        told = f"{meta.get('session')} {meta.get('started_at_ns')} {name}".encode("utf-8", "replace")
        return (
            bytes_field(1, kind)
            + fixed64_field(3, _whole(meta.get("started_at_ns")))
            + integer_field(4, _whole(meta.get("wall_ns")))
            + bytes_field(7, hashlib.blake2b(told, digest_size=16).digest())
        )

    def _resource(self) -> bytes:
        host = self._profile.meta.get("host")
        name = host.get("hostname") if isinstance(host, dict) else ""
        told = {"service.name": profile_name(self._profile), "host.name": str(name or "")}
        return b"".join(
            bytes_field(1, text_field(1, key) + bytes_field(2, text_field(1, value)))
            for key, value in told.items()
            if value
        )

    def _string(self, text: str) -> int:
        return self._strings.add(text.encode("utf-8", "replace"))

    def _paths(self, metric: str | None) -> tuple[dict[int, int], dict[int, list[int]]]:
        """By row of the tree: the stack and the attributes of every node that measured something."""
        tree = self._tree
        columns = [Weights(tree, info).own for info in chosen_metrics(tree, metric)]
        measured = [any(column[row] for column in columns) for row in range(len(tree))]
        check_size_of_paths(tree, iter(measured), [1] * len(tree.frames["kind"]), _MOST_LOCATIONS)
        locations = [self._location(text.label, text.file, text.line, text.first_line) for text in frame_texts(tree)]
        parent, frame_of, own = tree.parent.tolist(), tree.frame_of.tolist(), self._own_attributes()
        stacks, attributes = {}, {}
        for row in range(1, len(tree)):
            if not measured[row]:
                continue
            path, told, at = [], [], row
            while at > 0:
                path.append(locations[frame_of[at]])
                told += own.get(at, [])
                at = parent[at]
            stacks[row] = self._stacks.add(packed_field(1, path))
            attributes[row] = told
        return stacks, attributes

    def _location(self, label: str, file: str, line: int, first_line: int) -> int:
        name = self._string(label)
        function = self._functions.add(
            integer_field(1, name) + integer_field(3, self._string(file)) + integer_field(4, first_line)
        )
        return self._locations.add(bytes_field(3, integer_field(1, function) + integer_field(2, line)))

    def _own_attributes(self) -> dict[int, list[int]]:
        """Of nodes of threads and processes: what holds for every path through them."""
        found = {}
        for thread in self._profile.threads:
            name = [self._attribute("thread.name", text_field(1, thread.name))] if thread.name else []
            found[thread.node.row] = name
        for process in self._profile.processes:
            told = [self._attribute("process.pid", integer_field(3, process.pid))]
            if process.rank >= 0:
                told.append(self._attribute("leadline.rank", integer_field(3, process.rank)))
            found[process.node.row] = told
        return found

    def _attribute(self, key: str, value: bytes) -> int:
        return self._attributes.add(integer_field(1, self._string(key)) + bytes_field(2, value))


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63 else 0
