"""Windows of several machines on one clock by messages that they exchanged (`leadline clock-sync`), instead of by
CLOCK_REALTIME, which is as good as the machines' time service.

Events of every machine are moved to the clock of the one that all were compared with: by the offset, and stretched by
the drift. A machine that was not compared is refused, since its events would look as if they lay where they do not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from leadline._dataclass import dataclass
from leadline.profiles.lineage import clock_of, moved_ns, record_of_rows
from leadline.profiles.profile import Profile
from leadline.profiles.tables import Tables
from leadline.trace.tables import TraceError

_REALTIME_NS = 10**18
"""September 2001: a clock that shows less counts from something else."""
_MOST_DRIFT = 1e-3
"""A second in a quarter of an hour: no oscillator is so wrong, so a file that says it is damaged."""


@dataclass(frozen=True)
class Compared:
    """Two machines by their boot ids: `theirs` shows `offset_ns + drift * (t - reference_ns)` more than `ours` at t."""

    ours: str
    theirs: str
    reference_ns: int
    offset_ns: float
    drift: float
    half_width_ns: float

    def ours_ns(self, theirs_ns: Any) -> Any:
        """Times of theirs on the clock of ours."""
        since = np.asarray(theirs_ns, dtype=np.int64) - self.reference_ns
        behind = np.rint((self.offset_ns + self.drift * since) / (1 + self.drift)).astype(np.int64)
        return since - behind + self.reference_ns


def read_relations(text: str, name: str) -> list[Compared]:
    """What `leadline clock-sync --format json` printed, one comparison a line. Raises TraceError."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            told = json.loads(line)
            one = Compared(
                str(told["our_boot_id"]), str(told["boot_id"]), int(told["reference_ns"]), float(told["offset_ns"]),
                float(told["drift"]), float(told["half_width_ns"]),
            )  # fmt: skip
        except (ValueError, KeyError, TypeError) as error:
            raise TraceError(
                f"line {number} of {name} is not an output of leadline clock-sync --format json ({error})"
            ) from error
        if abs(one.drift) > _MOST_DRIFT or not np.isfinite(one.offset_ns):
            raise TraceError(f"line {number} of {name} is damaged: clocks do not drift by {one.drift:g}")
        found.append(one)
    if not found:
        raise TraceError(f"{name} is empty; write it with leadline clock-sync HOST:PORT --json >> {name}")
    if len({one.ours for one in found}) > 1:
        raise TraceError(f"{name} has comparisons from several machines; make all of them from one")
    return found


def on_related_clocks(profiles: Sequence[Profile], relations: Iterable[Compared]) -> list[Profile]:
    """The profiles with all events on the clock of the machine that the others were compared with. Raises TraceError
    where a machine was not."""
    listed = list(relations)
    by_boot = {one.theirs: one for one in listed}
    reference = listed[0].ours
    offsets = [clock for profile in profiles for clock in [_clock(profile, reference)] if clock is not None]
    if not offsets:
        raise TraceError(f"no profile is of the machine that the others were compared with (boot id {reference})")
    return [_moved(profile, reference, offsets[0], by_boot) for profile in profiles]


def refuse_unrelated(profiles: Sequence[Profile]) -> None:
    """Raises TraceError where a profile's times have no date and those of another are of another machine or have one:
    laid over each other both would look right."""
    dated, undated = set(), {}
    for profile in profiles:
        for record in record_of_rows(profile):
            clock = clock_of(record)
            if clock is not None and clock + moved_ns(record) >= _REALTIME_NS:
                dated.add(_boot(record, profile.meta))
            elif clock is not None:
                undated[_boot(record, profile.meta)] = str((record.get("program") or {}).get("argv", ["a profile"])[0])
    if undated and (dated or len(undated) > 1):
        name = next(iter(undated.values()))
        raise TraceError(
            f"{name} has no date for its clock, so it cannot be aligned with another machine's recording; record it "
            "with a tracer that writes its clock's offset, or import it alone"
        )


def _clock(profile: Profile, boot: str) -> int | None:
    """CLOCK_REALTIME less CLOCK_MONOTONIC of a machine, where a process of it says so."""
    for record in record_of_rows(profile):
        if _boot(record, profile.meta) == boot and (clock := clock_of(record)) is not None:
            return clock
    return None


def _moved(profile: Profile, reference: str, clock: int, relations: Mapping[str, Compared]) -> Profile:
    boots = {_boot(record, profile.meta) for record in record_of_rows(profile)}
    if boots == {reference}:
        return profile
    if len(boots) != 1:
        raise TraceError(
            "a profile has processes of several machines already; give those of each machine by themselves"
        )
    boot = next(iter(boots))
    relation = relations.get(boot)
    if relation is None:
        raise TraceError(
            f"the clock of a machine (boot id {boot or 'not recorded'}) was not compared with the others'; run "
            "leadline clock-sync with it, or leave --clocks out to go by CLOCK_REALTIME"
        )
    own = {moved_ns(record) for record in record_of_rows(profile)}
    if own - {0}:
        raise TraceError("a profile has been aligned with other machines already; give the original file")
    events = dict(profile.events)
    kernel = dict(profile.table("kernel_events"))
    ends = relation.ours_ns(events["start_ns"] + np.maximum(events["duration_ns"], 0))
    starts = relation.ours_ns(events["start_ns"])
    events["duration_ns"] = np.where(events["duration_ns"] < 0, events["duration_ns"], ends - starts)
    events["start_ns"] = starts
    kernel["time_ns"] = relation.ours_ns(kernel["time_ns"])
    tables = Tables({**profile.tables.columns, "events": events, "kernel_events": kernel})
    records = [_related(record, clock, relation) for record in profile.meta.get("processes") or ()]
    return Profile(tables, {**profile.meta, "processes": records})


def _related(record: Mapping[str, Any], clock: int, relation: Compared) -> dict[str, Any]:
    """A process whose events are on the other machine's clock; how wrong that may be is the relation's."""
    told = record.get("clock")
    if not isinstance(told, Mapping):
        return dict(record)
    related = {
        **told,
        "monotonic_ns": int(told["realtime_ns"]) - clock,
        "moved_ns": -round(relation.offset_ns),
        "uncertainty_ns": relation.half_width_ns,
        "method": "udp messages",
    }
    return {**record, "clock": related}


def _boot(record: Mapping[str, Any], meta: Mapping[str, Any]) -> str:
    host = meta.get("host")
    return str(record.get("boot_id") or (host.get("boot_id") if isinstance(host, Mapping) else "") or "")
