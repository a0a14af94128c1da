"""Our user traces beside one that LTTng has recorded here: viewers must find the same names and types in both."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from tests.convert.test_ctf import BOOT, window, write_ctf

SESSION = """
set -e
lttng-sessiond --daemonize --no-kernel --pidfile="$PWD/pid"
lttng create one --output="$PWD/out"
lttng enable-event -u 'lttng_ust_statedump:*'
lttng add-context -u -t vpid -t vtid
lttng start
LD_PRELOAD=liblttng-ust.so.1 sleep 0.5
lttng stop
lttng destroy
"""


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The metadata of a trace by LTTng, as babeltrace2 shows it."""
    if shutil.which("lttng-sessiond") is None or shutil.which("babeltrace2") is None:
        pytest.skip("comparing with LTTng needs the programs lttng-sessiond and babeltrace2")
    folder = tmp_path_factory.mktemp("lttng")
    environment = {**os.environ, "HOME": str(folder), "LTTNG_HOME": str(folder), "LTTNG_UST_REGISTER_TIMEOUT": "5000"}
    done = subprocess.run(
        ["bash", "-c", SESSION], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    try:
        metadata = next((folder / "out").rglob("metadata"), None)
        if done.returncode or metadata is None:
            pytest.skip(f"LTTng does not record here: {done.stderr[-200:]}")
        shown = subprocess.run(
            ["babeltrace2", "-o", "ctf-metadata", str(metadata.parent)], capture_output=True, text=True, timeout=60, check=True
        )  # fmt: skip
    finally:
        if (folder / "pid").exists():
            os.kill(int((folder / "pid").read_text(encoding="ascii")), signal.SIGTERM)
    return shown.stdout


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = write_ctf(window([("main", "aten::add", 2_000, 10)]), tmp_path_factory.mktemp("ours") / "out")
    return (folder / "ust/metadata").read_text(encoding="utf-8")


def block(metadata: str, begin: str) -> str:
    found = re.search(re.escape(begin) + r"\s*\{(.*?)\n\t?\}", metadata, re.DOTALL)
    assert found, begin
    return found[1]


def fields(text: str) -> dict[str, str]:
    """Declared fields by name, types without what is only written differently."""
    found = {}
    for what, name in re.findall(r"^\s*(.+?)\s+(\w+(?:\[\d+\])?);", text, re.MULTILINE):
        found[name] = what.replace("true", "1").replace("false", "0")
    return found


def test_the_environment_says_what_lttng_says(theirs: str, ours: str) -> None:
    said, told = (dict(re.findall(r"(\w+) = (.+);", block(one, "env"))) for one in (theirs, ours))
    told_by_us = {name: told.get(name) for name in said}
    own = ("trace_name", "trace_creation_datetime", "hostname")
    assert {name: value for name, value in told_by_us.items() if name not in own} == {
        name: value for name, value in said.items() if name not in own
    }
    assert {"trace_name", "hostname"} <= set(told)


def test_the_clock_is_named_by_the_boot_id(theirs: str, ours: str) -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    assert f'uuid = "{boot}"' in block(theirs, "clock")
    assert f'uuid = "{BOOT}"' in block(ours, "clock")
    for text in ('name = "monotonic"', 'description = "Monotonic Clock"', "freq = 1000000000"):
        assert text in block(theirs, "clock")
        assert text in block(ours, "clock")


def test_contexts_and_the_event_of_names_have_lttngs_types(theirs: str, ours: str) -> None:
    context, event = fields(block(theirs, "event.context := struct")), '"lttng_ust_statedump:procname";'
    mine = fields(block(ours, "event.context := struct"))
    assert {name: mine.get(name) for name in context} == context
    theirs_at, ours_at = (one[one.index(event) :] for one in (theirs, ours))
    assert fields(block(ours_at, "fields := struct")) == fields(block(theirs_at, "fields := struct"))
    names = [
        set(re.findall(r" (\w+);$", block(one, begin), re.MULTILINE))
        for one, begin in ((theirs, "struct packet_context"), (ours, "packet.context := struct"))
    ]
    assert names[0] == names[1]
