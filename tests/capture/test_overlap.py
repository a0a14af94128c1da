"""Regions that do not nest: opened in one frame and closed elsewhere. Every nanosecond counts once, at the right place."""

from __future__ import annotations

import pytest

from leadline.profiles import Profile
from leadline.schema import FrameKind

BEGIN = """
import asyncio, contextlib, json, time
UNIT = 3_000_000
def work(units):
    end = time.perf_counter_ns() + units * UNIT
    while time.perf_counter_ns() < end:
        pass
"""
"""`work` spins: its time belongs to whatever region is innermost."""

EXIT_STACK = """
def open_both(stack):
    stack.enter_context(leadline.region("first"))
    work(1)
    stack.enter_context(leadline.region("second"))
    work(2)
def main():
    with contextlib.ExitStack() as stack:
        open_both(stack)
        work(4)
        with leadline.region("inside"):
            work(8)
"""

BY_HAND = """
def main():
    first, second = leadline.region("first"), leadline.region("second")
    first.__enter__()
    work(1)
    second.__enter__()
    work(2)
    first.__exit__(None, None, None)
    work(4)
    with leadline.region("inside"):
        work(8)
    second.__exit__(None, None, None)
"""

HELPER = """
class Timer:
    def __enter__(self):
        self.region = leadline.region("first")
        self.region.__enter__()
    def __exit__(self, *raised):
        self.region.__exit__(*raised)
@contextlib.contextmanager
def timed():
    with leadline.region("second"):
        yield
def main():
    with Timer():
        work(1)
        with timed():
            work(6)
            with leadline.region("inside"):
                work(8)
"""

GENERATOR = """
def batches():
    for number in range(3):
        with leadline.region("first"):
            work(1)
            with leadline.region("second"):
                work(1)
                yield number
def main():
    for batch in batches():
        with leadline.region("inside"):
            work(3)
"""

AWAIT = """
async def request(name):
    with leadline.region(name):
        work(1)
        with leadline.region("part"):
            await asyncio.sleep(0)
            work(2)
            with leadline.region("inside"):
                work(1)
            await asyncio.sleep(0)
        work(1)
async def both():
    await asyncio.gather(request("first"), request("second"))
def main():
    asyncio.run(both())
"""

END = """
begin = time.perf_counter_ns()
main()
print(json.dumps({"wall_ns": time.perf_counter_ns() - begin}))
"""


def spans(profile: Profile, name: str) -> list[str]:
    """The regions above each place of a region, outermost first."""
    places = []
    for node in profile.tree.find(kind=FrameKind.REGION, name=name):
        places.append(" > ".join(above.name for above in node.path()[:-1] if above.kind == "region"))
    return sorted(set(places))


@pytest.mark.parametrize(
    ("program", "units", "inside", "calls"),
    [
        (EXIT_STACK, 15, ["first > second"], {"first": 1, "second": 1, "inside": 1}),
        (BY_HAND, 15, ["second"], {"first": 1, "second": 1, "inside": 1}),
        (HELPER, 15, ["first > second"], {"first": 1, "second": 1, "inside": 1}),
        (GENERATOR, 15, [""], {"first": 3, "second": 3, "inside": 3}),
        (AWAIT, 10, ["first > part", "second > part"], {"first": 1, "second": 1, "part": 2, "inside": 2}),
    ],
    ids=["ExitStack", "by hand", "helper", "generator", "await"],
)
def test_every_nanosecond_counts_once(
    place, program: str, units: int, inside: list[str], calls: dict[str, int]
) -> None:
    place.write("script.py", "import leadline\n" + BEGIN + program + END)
    result = place.leadline("run", "-q", "script.py")
    assert (result.returncode, result.stderr.decode()) == (0, "")
    wall_ns = int(result.stdout.decode().split(":")[1].strip(" }\n"))
    profile = place.open("script.leadline")
    regions = list(profile.tree.find(kind=FrameKind.REGION))
    exclusive = sum(node.exclusive("time").sum for node in regions)
    assert units * 3_000_000 <= exclusive <= wall_ns
    for node in regions:
        below = sum(child.inclusive("time").sum for child in node.children)
        assert node.inclusive("time").sum == node.exclusive("time").sum + below
    for name, number in calls.items():
        of_calls = [node.exclusive("call_time") for node in regions if node.name == name]
        own_ns = sum(node.exclusive("time").sum for node in regions if node.name == name)
        assert sum(values.count for values in of_calls) == number  # each once, wherever it went on
        assert sum(values.sum for values in of_calls) >= own_ns
        for values in of_calls:
            assert values.min * values.count <= values.sum <= values.max * values.count
            assert values.sum**2 <= values.sum_squares * max(values.count, 1) * (1 + 1e-9)
    assert spans(profile, "inside") == inside
    assert not profile.losses
