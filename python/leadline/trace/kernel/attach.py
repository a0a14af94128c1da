"""Adds a recording of the kernel to the profile of the same run: its events, what is missing, and how it was made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from leadline.profiles import Profile, open_profile
from leadline.profiles.tables import Tables, columns_from_rows
from leadline.profiles.writer import write_profile
from leadline.schema import TABLES, LossKind
from leadline.trace.kernel import perf, tracefs
from leadline.trace.kernel.columns import NUMBERS, Columns, in_order
from leadline.trace.tables import TraceError

_KEPT = ("source", "level", "from_ns", "until_ns", "lost", "sentences")


def attach(path: str | Path, folder: Path) -> None:
    """The profile at `path` with the recording in `folder`, in its place. Raises ProfileFileError, and OSError or
    ValueError where the recording has no description."""
    description = json.loads((folder / "recording.json").read_text(encoding="utf-8"))
    profile = open_profile(path)
    sentences = list(description["sentences"])
    lost = int(description["lost"])
    events = in_order([])
    try:
        events, missing = _decoded(folder, description)
        events["time_ns"] = events["time_ns"] + int(description.get("ahead_ns", 0))
        lost = max(lost, missing)
    except (TraceError, OSError, ValueError, KeyError) as error:
        sentences.append(f"what the kernel recorded could not be read ({error})")
    about = {**{name: description[name] for name in _KEPT}, "lost": lost, "sentences": sentences}
    if threads := description["details"].get("threads"):
        about["threads"] = threads
    kept = _in_window(events, description["from_ns"], description["until_ns"])
    if not len(kept["time_ns"]) and not threads:
        sentences.append("nothing of the program was recorded" if description["from_ns"] else "no trace window opened")
    write_profile(path, with_events(profile, kept, about))


def _decoded(folder: Path, description: dict[str, Any]) -> tuple[Columns, int]:
    details = description["details"]
    if description["source"] == "tracefs":
        raw = {int(file.stem.removeprefix("cpu")): file.read_bytes() for file in sorted(folder.glob("cpu*.raw"))}
        parts, lost = tracefs.decode(raw, details["formats"], details["machine"])
        return in_order(parts), lost
    if description["source"] == "perf":
        raw = {int(file.stem.removeprefix("cpu")): file.read_bytes() for file in sorted(folder.glob("cpu*.perf"))}
        parts, lost = perf.decode(raw)
        return in_order(parts), lost
    return in_order([]), 0


def _in_window(events: Columns, from_ns: int, until_ns: int) -> Columns:
    inside = (events["time_ns"] >= from_ns) & (events["time_ns"] <= until_ns)
    return {name: values[inside] for name, values in events.items()}


def with_events(profile: Profile, events: Columns, about: dict[str, Any], process: int = 0) -> Profile:
    """A new profile with these events, recorded on the machine of this row of its processes; names become strings of
    it. `about`: what `meta["kernel"]` says."""
    strings = profile.tables["strings"]
    count = profile.tables.rows("strings")
    texts, of = np.unique(events["name"].astype(str), return_inverse=True)
    losses = [
        (
            LossKind.KERNEL_EVENTS_DROPPED,
            about["lost"],
            "the kernel's buffer was full; trace fewer steps or a lower level",
        )
        if about["lost"]
        else None,
        (LossKind.KERNEL_UNSEEN, 1, "; ".join(about["sentences"])) if about["sentences"] else None,
    ]
    told = [one for one in losses if one is not None]
    added = [str(text).encode() for text in texts.tolist()] + [sentence.encode() for _, _, sentence in told]
    data, offsets = strings["bytes"], strings["offsets"]
    ends = np.cumsum([len(one) for one in added], dtype=np.int64) + int(offsets[-1])
    columns: dict[str, Any] = {
        **profile.tables.columns,
        "strings": {
            "bytes": np.concatenate([data[: int(offsets[-1])], np.frombuffer(b"".join(added), dtype=np.uint8)]),
            "offsets": np.concatenate([offsets, ends.astype(offsets.dtype)]),
        },
    }
    table = {name: events[name] for name in NUMBERS}
    table["name"] = of.ravel() + count
    table["process"] = np.full(len(events["time_ns"]), process)
    columns["kernel_events"] = {
        column.name: table[column.name].astype(column.dtype) for column in TABLES["kernel_events"].columns
    }
    rows = [
        {"process": process, "kind": int(kind), "count": number, "detail": count + len(texts) + at}
        for at, (kind, number, _) in enumerate(told)
    ]
    more = columns_from_rows("losses", rows)
    columns["losses"] = {name: np.concatenate([values, more[name]]) for name, values in columns["losses"].items()}
    return Profile(Tables(columns), {**profile.meta, "kernel": about})
