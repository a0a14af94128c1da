"""The same program under Leadline and under py-spy or perf, which see the same."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
from tests.cpu.conftest import build, within_chance


def test_py_spy_sees_the_same(place, sample) -> None:
    program = """
    from collections import Counter
    import textwrap, ast
    TEXT = "\\n".join(f"def f{i}(a, b=(1, 2)):\\n    return [a + {i}, *b, {{'x': {i}}}]" for i in range(300))
    def parse():
        return ast.parse(TEXT)
    def count():
        return Counter(TEXT)
    def wrap():
        return textwrap.fill(TEXT[:4000], 60)
    begin = time.thread_time()
    while time.thread_time() - begin < 1.5:
        parse(); count(); wrap()
    """
    spy = Path(sys.executable).with_name("py-spy")
    if not spy.exists():
        pytest.skip("py-spy is not installed here")
    ours = sample(program)
    asked = ("--format", "raw", "--rate", "250", "--gil", "-o", "spied.txt")
    spied = place.run(str(spy), "record", *asked, "--", sys.executable, "script.py")
    assert spied.returncode == 0, spied.stderr.decode()
    theirs: dict[str, int] = {}
    for line in (place.folder / "spied.txt").read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        for name in ("parse", "count", "wrap"):
            if f"{name} (script.py" in stack:
                theirs[name] = theirs.get(name, 0) + int(count)
    total = sum(theirs.values())
    own = {name: ours.below(name) for name in theirs}
    for name, count in theirs.items():
        share, expected = own[name] / sum(own.values()), count / total
        assert within_chance(share, expected, min(total, ours.samples), sigmas=6), (own, theirs)


WORK = """
#define WORK(name) __attribute__((noinline)) unsigned long name(unsigned long rounds) { \\
  volatile unsigned long n = 0; for (unsigned long i = 0; i < rounds; ++i) n += i; return n; }
WORK(native_heavy) WORK(native_light) WORK(native_middle)
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")
@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed here")
def test_perf_sees_the_same_native_functions(place, sample) -> None:
    build(place, "work", WORK)
    ours = sample(
        """
        import ctypes, random
        work = ctypes.CDLL("./work.so")
        def about(rounds):  # a loop of one length would beat with the samples
            return ctypes.c_ulong(int(rounds * 2 * random.random()))
        begin = time.thread_time()
        while time.thread_time() - begin < 1.5:
            work.native_heavy(about(600_000))
            work.native_light(about(200_000))
            work.native_middle(about(400_000))
        """,
        "--native",
    )
    asked = ("record", "-q", "-e", "cpu-clock:u", "-F", "250", "-o", "perf.data", "--", sys.executable, "script.py")
    taken = place.run("perf", *asked)
    if taken.returncode != 0:
        pytest.skip(f"perf may not record here: {taken.stderr.decode().strip()[-200:]}")
    told = place.run("perf", "report", "-q", "--stdio", "-i", "perf.data", "--sort", "symbol", "-F", "sample,symbol")
    rows = re.findall(r"^\s*(\d+)\s+\[\.\]\s+(native_\w+)", told.stdout.decode(), re.MULTILINE)
    theirs = {name: int(count) for count, name in rows}
    assert set(theirs) == {"native_heavy", "native_light", "native_middle"}, told.stdout.decode()
    total, own = sum(theirs.values()), {name: ours.below(name) for name in theirs}
    for name, count in theirs.items():
        share, expected = own[name] / sum(own.values()), count / total
        assert within_chance(share, expected, min(total, ours.samples), sigmas=6), (own, theirs)
