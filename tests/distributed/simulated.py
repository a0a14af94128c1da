"""Profiles of simulated ranks: a small training loop of which every number is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leadline.profiles import Profile, write_profile
from leadline.profiles.build import build
from leadline.profiles.builder import synthetic_meta

MS = 1_000_000


@dataclass
class SimulatedRank:
    """Times are ns in all steps together."""

    rank: int
    world_size: int = 4
    host: str = "node0"
    forward: int = 400 * MS
    backward: int = 800 * MS
    optimizer: int = 100 * MS
    data: int = 50 * MS
    communication: int = 200 * MS
    outside: int = 150 * MS
    steps: int = 100
    job: str = "job-1"
    pid: int = 0
    start_ns: int = 1_000_000_000_000
    end_ns: int = 0
    role: Mapping[str, int] = field(default_factory=dict)
    calls: int = 1000
    complete: bool = True
    extra: str = ""
    """More lines below the loop's, in the language of `build`."""

    def profile(self) -> Profile:
        pid = self.pid or 1000 + self.rank
        inside = self.forward + self.backward + self.optimizer + self.data + self.communication
        wall = inside + self.outside
        talk = '{"role":"communication"}'
        talked = f"{self.communication}/{self.steps}"
        collective = f"operator c10d::allreduce_ | detail={talk} time={talked} call_time={talked}"
        collective = collective if self.communication else "operator aten::add | time=1"
        n = self.calls
        profile = build(
            f"""
process python train.py --lr 1 | pid={pid} rank={self.rank} local_rank={self.rank % 8} start_ns={self.start_ns} end_ns={self.end_ns or self.start_ns + wall} complete={int(self.complete)}
  thread MainThread | tid={pid} wall_ns={wall} cpu_ns={wall // 2} operator_ns={inside - self.data} data_ns={self.data}
    phase step | call_time={wall}/{self.steps}
    python main @ train.py:30
      phase data loading | time={self.data}/{self.steps} call_time={self.data}/{self.steps}
      phase forward | time=0/{self.steps} call_time={self.forward}/{self.steps}
        module model.layer [Linear]
          operator aten::linear | time={self.forward}/{n} call_time={self.forward}/{n} alloc_bytes={8 * n}/{n}
          phase backward
            operator aten::mm | time={self.backward}/{n} call_time={self.backward}/{n}
      {collective}
      phase optimizer | time={self.optimizer}/{self.steps} call_time={self.optimizer}/{self.steps}
{self.extra}
"""
        )
        profile.meta.update(synthetic_meta())
        profile.meta["started_at_ns"] = self.start_ns
        profile.meta["wall_ns"] = wall
        profile.meta["processes"] = [
            {
                "pid": pid,
                "rank": self.rank,
                "hostname": self.host,
                "started_at_ns": self.start_ns,
                "wall_ns": wall,
                "cost": {"callbacks_ns": 1000, "flush_ns": 10, "events": 5, "held_bytes": 100},
                "launch": {"job": self.job, "world_size": self.world_size},
                "available": {"torch": {"ok": True, "version": "2", "role": dict(self.role)}},
            }
        ]
        return profile

    def write(self, folder: Path, name: str = "") -> Path:
        path = folder / (name or f"{self.host}_rank{self.rank}.leadline")
        write_profile(path, self.profile())
        return path


def write_ranks(folder: Path, number: int = 4, **facts: Any) -> list[Path]:
    """The files of a whole job whose ranks differ a little."""
    return [
        SimulatedRank(rank, number, forward=(400 + rank) * MS, host=f"node{rank // 2}", **facts).write(folder)
        for rank in range(number)
    ]
