"""States of threads that the page draws are those that Python reads from the same kernel events."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import pytest

from leadline.profiles.builder import ProfileBuilder
from leadline.report.embedded import packed

UI = Path(__file__).parents[2] / "ui"


@pytest.fixture(scope="module")
def printer(tmp_path_factory):
    if not (UI / "node_modules").exists():
        pytest.skip("Running the page's model needs `npm ci` in ui.")
    folder = tmp_path_factory.mktemp("printer")
    entry = folder / "entry.ts"
    module = json.dumps(str(UI / "model/testing/print.ts"))
    entry.write_text(
        f'import {{ readFileSync }} from "node:fs"; import {{ print }} from {module}; print(readFileSync);'
    )
    command = [
        UI / "node_modules/.bin/esbuild",
        entry,
        "--bundle",
        "--platform=node",
        f"--outfile={folder / 'print.js'}",
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)

    def printed(path):
        done = subprocess.run(
            ["node", folder / "print.js", path], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return printed


def scheduled(seed):
    """A profile with what the kernel did with its three threads, drawn by lot."""
    draw = random.Random(seed)
    builder = ProfileBuilder()
    process = builder.process("train.py", pid=100, start_ns=1)
    own = [100, 101, 102]
    for tid in own:
        builder.thread(process, f"thread-{tid}", tid=tid)
    others = [0, 900, 901]
    time = 950
    for _ in range(120):
        time += draw.randrange(1, 12)
        kind = draw.choice(
            ["switch"] * 6 + ["waking"] * 4 + ["syscall_entry", "syscall_exit", "switch_out", "switch_in", "fork"]
        )
        tid, target = draw.choice(own + others), draw.choice(own + others)
        value = draw.choice([0, 1, 2]) if kind == "switch" else draw.choice([0, 1])
        name = draw.choice(["futex", "poll", "read"]) if kind.startswith("syscall") else f"task-{target}"
        builder.kernel_event(kind, time, name, tid=tid, target=target, value=value, cpu=0)
    profile = builder.profile()
    profile.meta["kernel"] = {"source": "tracefs", "level": "syscalls", "from_ns": 1_000, "until_ns": 1_500}
    return profile


def test_states_of_threads_agree(printer, tmp_path):
    for seed in range(8):
        profile = scheduled(seed)
        path = tmp_path / "states.bin"
        path.write_bytes(packed(profile.tables, profile.meta))
        states = profile.window.states
        names = ("tid", "start_ns", "duration_ns", "state", "reason", "other_name")
        wanted = [list(row) for row in zip(*(states[name].tolist() for name in names), strict=True)]
        assert sorted(printer(path)["states"]) == sorted(wanted), seed
