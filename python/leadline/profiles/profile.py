"""A profile as plain data: its tables, its tree, its meta. Everything after it is a pure function of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline._dataclass import dataclass, field
from leadline.profiles import records
from leadline.profiles.tables import Columns, Tables
from leadline.profiles.tree import Tree
from leadline.schema import EventKind

if TYPE_CHECKING:
    from leadline.analysis.findings import Findings
    from leadline.query import QueryResult
    from leadline.verdict.model import Verdict


@dataclass(frozen=True)
class Window:
    """What the trace window of a profile holds; `steps` are the training steps of which it has the whole, in order."""

    steps: tuple[int, ...]
    profile: Profile = field(repr=False)

    @cached_property
    def states(self) -> dict[str, Any]:
        """What every thread did, as NumPy columns: tid, start_ns, duration_ns, state, cpu, reason, other, other_name;
        no rows where the kernel was not recorded (`leadline run --os-trace sched`)."""
        from leadline.trace.kernel.window import states_of  # opened when it is asked, never when profiles are read

        return states_of(self.profile).columns()

    @cached_property
    def edges(self) -> dict[str, Any]:
        """What waited for what, as NumPy columns: source and target (rows of `events`) and kind (launch, backward)."""
        from leadline.trace.dataflow import edges

        return edges(self.profile).columns()

    @cached_property
    def clocks(self) -> dict[str, Any]:
        """How the clock of every process's events relates to CLOCK_REALTIME, as NumPy columns: process, offset_ns (to
        be added), drift, half_width_ns (how wrong it may be), method, pairs; no row where the process did not say."""
        from leadline.trace.clock_table import clocks

        return clocks(self.profile)

    @cached_property
    def counters(self) -> dict[str, Any]:
        """What tensors held over time, as NumPy columns: time_ns, process, device, name, value."""
        from leadline.trace.counters import counters

        return counters(self.profile)


class Profile:
    """What `leadline.open` returns. Reading never changes it; arrays are views and must not be written to."""

    def __init__(self, tables: Tables, meta: dict[str, Any]) -> None:
        self.tables = tables
        self.meta = meta
        self.tried: tuple[Mapping[str, Any], ...] = ()
        """What `leadline try` has measured of this program (see `profiles.tried`)."""

    def table(self, name: str) -> Columns:
        """The columns of a table of the schema as NumPy arrays by name; raises KeyError with the tables there are."""
        if name not in self.tables.columns:
            raise KeyError(f"There is no table called {name!r}; the tables are {', '.join(self.tables.columns)}.")
        return self.tables[name]

    @cached_property
    def tree(self) -> Tree:
        return Tree(self.tables)

    @cached_property
    def processes(self) -> list[records.Process]:
        return records.processes(self.tables, self.tree)

    @cached_property
    def threads(self) -> list[records.Thread]:
        return records.threads(self.tables, self.tree)

    @cached_property
    def devices(self) -> list[records.Device]:
        return records.devices(self.tables)

    @cached_property
    def losses(self) -> list[records.Loss]:
        """What was not measured and why; a report that leaves this out is wrong."""
        return records.losses(self.tables)

    @property
    def events(self) -> Columns:
        """Single events of the trace window, ordered by start; no rows when none was taken."""
        return self.tables["events"]

    def findings(self, *rules: str, settings: Mapping[str, str] | None = None) -> Findings:
        """What `leadline analyze` says about this profile, the most important first; see leadline.analysis.analyze."""
        from leadline.analysis.analyze import analyze  # it reads profiles, so it cannot be imported by them

        return analyze(self, rules, settings)

    @cached_property
    def verdict(self) -> Verdict:
        """Why the step is slow: the account of one step, its critical resource, a sentence; see leadline.verdict."""
        from leadline.verdict.judge import judge  # it reads profiles, so it cannot be imported by them

        return judge(self)

    def query(self, text: str) -> QueryResult:
        """What a one-line query asks, such as `operator:aten::* where phase = backward sort -self top 10`; see
        docs/query.md. Raises leadline.query.QueryError, one sentence with the place of the mistake."""
        from leadline.query import query  # opened when it is asked, never when profiles are read

        return query(self, text)

    def _repr_html_(self) -> str:
        """What Jupyter shows."""
        from leadline.notebook.page import profile_html

        return profile_html(self)

    @cached_property
    def window(self) -> Window:
        """Which steps the trace window holds; none when no window was taken or the program has no steps."""
        events = self.events
        steps = np.unique(np.asarray(events["step"])[np.asarray(events["kind"]) == EventKind.STEP])
        return Window(tuple(steps.tolist()), self)

    def __repr__(self) -> str:
        return f"<Profile {len(self.tree)} nodes, {self.tables.rows('processes')} processes>"
