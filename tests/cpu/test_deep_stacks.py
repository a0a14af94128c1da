"""Recursion through C, as deep as the interpreter allows: what a sample looks at has a bound, and so has what it costs."""

from __future__ import annotations

import sys

import pytest

LEVELS = 2000 if (3, 12) <= sys.version_info < (3, 14) else 20_000
"""CPython 3.12 and 3.13 end a recursion through C between 2,000 and 4,000 levels."""
DEEP = """
import gc, sys, threading
sys.setrecursionlimit(10**6)
threading.stack_size(1 << 30)

def deeper(left):
    if left:
        return max([left], key=lambda _: deeper(left - 1))
    seconds.append(spin(0))  # all that follows is the same work, however long samples take
    begin = time.thread_time()
    total = 0
    for number in range(3_000_000):
        total += number
    gc.collect()
    seconds.append(time.thread_time() - begin)

seconds = []
thread = threading.Thread(target=deeper, args=({levels},))
thread.start()
thread.join()
print(json.dumps(seconds[-1]))
"""


@pytest.mark.parametrize("options", [(), ("--native=yes", "--wait=97")], ids=["python", "native"])
def test_samples_of_deep_recursion_cost_no_more_than_a_few_per_cent(sample, options: tuple[str, ...]) -> None:
    shallow = sample(DEEP.replace("{levels}", "2"), *options, hz=97)
    deep = sample(DEEP.replace("{levels}", str(LEVELS)), *options, hz=97)
    assert deep.said < 2 * shallow.said + 0.2  # on a busy machine; it was ten times as much
    assert deep.total_ns > 0.5e9 * deep.said  # what was left out is in later samples
    assert deep.losses().keys() & {"samples_dropped", "python_frames_truncated"}, "the bound is told"
