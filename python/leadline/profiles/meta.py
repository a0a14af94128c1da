"""`meta.json` read without trust: after `parse_meta` its well-known keys exist and have the types that readers count
on.

Numbers fit 64 bits and are finite, nesting is bounded, text can be encoded in UTF-8, so that whoever prints or writes
it again need not check. Keys that are not known here are kept.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from typing import Any, cast

_MAX_DEPTH = 64
_INT64 = 2**63
_TYPES: dict[str, type] = {
    "leadline": str,
    "program": dict,
    "started_at_ns": int,
    "wall_ns": int,
    "asked": dict,
    "available": dict,
    "cost": dict,
    "clock": dict,
    "host": dict,
    "processes": list,
    "complete": bool,
}
_NUMBERS = {
    "cost": ("callbacks_ns", "flush_ns", "events", "held_bytes", "percent"),
    "clock": ("monotonic_ns", "realtime_ns", "uncertainty_ns"),
}
"""Values of these objects that are numbers or null."""

_FILE: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("fold", "findings", "report", "kernel", "rolled", "pruned", "exit"), dict),
    **dict.fromkeys(("session", "drawn"), str),
}
_PROCESS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("pid", "parent_pid", "rank", "local_rank", "ended_at_ns", "forked_from"), int),
    **dict.fromkeys(("session", "identity", "parent_identity", "boot_id", "hostname"), str),
    **dict.fromkeys(("not_measured", "not_written", "python_frames"), str),
    **dict.fromkeys(("sources", "launch", "dataflow", "exit", "kernel", "recorder"), dict),
    **dict.fromkeys(("tools", "passes", "loaders", "engines", "killed"), list),
}
_PROGRAM: dict[str, type | tuple[type, ...]] = {
    "argv": list,
    **dict.fromkeys(("python", "implementation", "executable", "cwd"), str),
}
_HOST: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("hostname", "system", "machine", "boot_id", "kernel"), str),
    "cpus": int,
    "products": list,
}
"""Types of further keys, of which a value of another type is left out: it costs what it would have said."""


class MetaError(ValueError):
    """The message completes "its part meta.json ..."."""


def is_imported(meta: Mapping[str, Any]) -> bool:
    """Whether another profiler has recorded it: what it calls its program is the file that was read."""
    available = meta.get("available")
    return isinstance(available, Mapping) and "import" in available


def typed_command(meta: Mapping[str, Any]) -> str:
    """What a user typed for the program, to stand in commands for a shell; `PROGRAM` where it is not known."""
    program = meta.get("program")
    argv = program.get("argv") if isinstance(program, Mapping) else None
    if not isinstance(argv, list) or not argv or is_imported(meta):
        return "PROGRAM"
    first, *more = (str(word) for word in argv)
    folder = program.get("cwd") if isinstance(program, Mapping) else None
    command = shlex.join([first.removeprefix(f"{folder}/") if folder else first, *more])
    is_on_path = "/" not in first and not first.startswith("-") and not first.endswith(".py")
    return f"-- {command}" if is_on_path else command  # of `torchrun` no file is meant


def parse_meta(data: bytes) -> dict[str, Any]:
    """The object in `data`, its text cleaned; raises MetaError."""
    try:
        meta = json.loads(data, parse_constant=_refuse_constant, parse_int=_int64, parse_float=_finite)
    except MetaError:
        raise
    except (ValueError, RecursionError):
        raise MetaError("is not JSON") from None
    if not isinstance(meta, dict):
        raise MetaError("is not a JSON object")
    cleaned: dict[str, Any] = _clean(meta, 0)
    return cleaned


def complete_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    """`meta` with every well-known key, empty where it was absent; raises MetaError for one of another type than
    readers expect."""
    known = {name: kind() for name, kind in _TYPES.items()}
    whole = {**known, **{name: value for name, value in meta.items() if value is not None or name not in known}}
    _check_types("", whole)
    for record in whole["processes"]:
        if not isinstance(record, dict):
            raise MetaError("has a process that is not a JSON object")
        _check_types("processes.", {name: value for name, value in record.items() if value is not None})
    whole["processes"] = [_usable(_with_usable_clock(record), _PROCESS) for record in whole["processes"]]
    return _usable(_with_usable_clock(whole), _FILE)


def _usable(values: dict[str, Any], types: Mapping[str, type | tuple[type, ...]]) -> dict[str, Any]:
    """Without values that no reader could use, in `program` and `host` too."""
    kept = {name: value for name, value in values.items() if name not in types or _fits(value, types[name])}
    for name, inner in (("program", _PROGRAM), ("host", _HOST)):
        if isinstance(kept.get(name), dict) and inner is not types:
            kept[name] = _usable(kept[name], inner)
    if isinstance(argv := kept.get("argv"), list):
        kept["argv"] = [word for word in argv if isinstance(word, str)]
    if isinstance(tools := kept.get("tools"), list):
        kept["tools"] = [one for one in tools if isinstance(one, dict) and isinstance(one.get("tool", ""), str)]
    if isinstance(available := kept.get("available"), dict):
        kept["available"] = {name: status for name, status in available.items() if isinstance(status, dict)}
    return kept


def _fits(value: Any, kind: type | tuple[type, ...]) -> bool:
    """Whether a value is of that type; a truth value is no number."""
    return value is None or (isinstance(value, kind) and not (kind is int and isinstance(value, bool)))


def _with_usable_clock(values: dict[str, Any]) -> dict[str, Any]:
    """A clock relation that lacks one of its two sides relates nothing: it becomes empty, which readers must expect."""
    clock = values.get("clock")
    if clock and (clock.get("monotonic_ns") is None or clock.get("realtime_ns") is None):
        return {**values, "clock": {}}
    return values


def well_typed(record: Mapping[str, Any]) -> dict[str, Any]:
    """A side file's object without what `complete_meta` would refuse, for a profile that must come about all the
    same."""
    try:
        values = parse_meta(json.dumps(record).encode())
    except (MetaError, RecursionError):
        return {}
    return {name: value for name, value in values.items() if value is None or not _wrong(name, value)}


def _check_types(where: str, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if wrong := _wrong(name, value):
            raise MetaError(f"has {wrong.format(where + name)}")


def _wrong(name: str, value: Any) -> str:
    """What is wrong with the value of a well-known key, to be filled with its name; empty where nothing is."""
    kind = _TYPES.get(name)
    if kind is None:
        return ""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        return f"a {{}} that is not of type {kind.__name__}"
    for key in _NUMBERS.get(name, ()):
        number = cast(dict[str, Any], value).get(key)
        if number is not None and (isinstance(number, bool) or not isinstance(number, int | float)):
            return f"a {{}}.{key} that is not a number"
    return ""


def _clean(value: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise MetaError(f"is nested more than {_MAX_DEPTH} levels deep")
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_clean(one, depth + 1) for one in value]
    if isinstance(value, dict):
        return {_clean(name, depth + 1): _clean(one, depth + 1) for name, one in value.items()}
    return value


def _int64(text: str) -> int:
    if len(text) > 20 or not -_INT64 <= int(text) < _INT64:
        raise MetaError("has a number beyond 64 bits")
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise MetaError("has a number that is not finite")
    return value


def _refuse_constant(text: str) -> float:
    raise MetaError(f"has the number {text}, which JSON does not know")


def source_hashes(meta: Mapping[str, Any]) -> dict[str, str]:
    """SHA-256 of source files as they were when the program ran, as far as the file says; empty where one may have been
    written while it ran."""
    found: dict[str, str] = {}
    records: list[Any] = [meta, *meta.get("processes", [])]
    for record in records:
        sources = record.get("sources") if isinstance(record, dict) else None
        if isinstance(sources, dict):
            found |= {str(file): text for file, text in sources.items() if isinstance(text, str)}
    return found
