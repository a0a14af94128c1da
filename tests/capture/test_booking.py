"""What other sources have measured stands in the profile at the path that they name."""

from __future__ import annotations

import pytest

import leadline

PROGRAM = """
import threading
import leadline
from leadline import PathFrame, Total

def step():
    with leadline.region("step"):
        fusion = leadline.book([PathFrame("operator", "fusion.3", detail={"hlo": "add"})], {})
        where.append(fusion)
        leadline.book([("operator", "fusion.3")], {"copy_bytes": 64})

assert leadline.book([("kernel", "early")], {"gpu_time": 5}) is None and leadline.place() is None
where = []
with leadline.profile("out.leadline", quiet=True):
    step()
    kernel = [PathFrame("kernel", "loop_add", file="model.py", line=12)]
    leadline.book(kernel, {"gpu_time": Total.of([10, 20, 60])}, below=where[0], device="cuda:1", stream=7)
    later = threading.Thread(
        target=leadline.book, args=(kernel, {"gpu_time": 10}), kwargs=dict(below=where[0], device="cuda:1", stream=7)
    )
    later.start()
    later.join()
    leadline.book([("region", "from a file")], {"copy_bytes": 4096}, below="thread", device="xpu:0")
    leadline.pause()
    assert leadline.place() is None and leadline.book([("kernel", "paused")], {"gpu_time": 5}) is None
    assert leadline.book([], {"gpu_time": 1}, below=where[0], device="cuda:1") == where[0]
    leadline.resume()
with leadline.profile("next.leadline", quiet=True):
    assert leadline.book(kernel, {"gpu_time": 5}, below=where[0]) is None
"""


def test_bookings_stand_at_their_paths_and_in_the_report(place):
    program = place.write("program.py", PROGRAM)
    ran = place.python(str(program))
    assert ran.returncode == 0, ran.stderr.decode()
    profile = leadline.open(place.folder / "out.leadline")
    kernel = next(node for node in profile.tree.walk() if node.name == "loop_add")
    assert (kernel.kind, kernel.file, kernel.line) == ("kernel", "model.py", 12)
    names = [node.name for node in profile.tree.walk() if kernel in node.children]
    assert names == ["fusion.3"]
    time = kernel.exclusive("gpu_time")
    assert (time.count, time.sum, time.min, time.max) == (4, 100, 10, 60)
    step = next(node for node in profile.tree.walk() if node.name == "step" and node.kind == "region")
    assert step.inclusive("gpu_time").sum == 101
    assert step.inclusive("copy_bytes").sum == 64
    loose = next(node for node in profile.tree.walk() if node.name == "from a file")
    assert loose.exclusive("copy_bytes").sum == 4096
    assert [(device.index, device.detail.get("type")) for device in profile.devices] == [(1, None), (0, "xpu")]
    assert profile.losses == []
    shown = place.leadline("report", "out.leadline", "--sort", "gpu_time")
    assert shown.returncode == 0
    assert "loop_add" in shown.stdout.decode()


@pytest.mark.parametrize(
    ("call", "word"),
    [
        ('leadline.book([("cernel", "k")], {})', "cernel"),
        ('leadline.book([("thread", "k")], {})', "thread"),
        ('leadline.book([], {"gpu_tim": 5})', "gpu_tim"),
        ('leadline.book([], {"gpu_time": leadline.Total(2, 50, 1, 2)})', "sum"),
        ('leadline.book([], {"gpu_time": 5}, device="gpu:0")', "gpu"),
        ('leadline.book([], {"gpu_time": 5}, device="cuda:x")', "cuda:x"),
        ('leadline.book([], {"gpu_time": 5}, below="root")', "root"),
    ],
)
def test_a_booking_that_makes_no_sense_is_refused_with_a_sentence(place, call, word):
    program = place.write(
        "program.py",
        f"""
        import leadline
        with leadline.profile("out.leadline", quiet=True):
            try:
                {call}
            except ValueError as error:
                print(error)
        """,
    )
    ran = place.python(str(program))
    assert ran.returncode == 0, ran.stderr.decode()
    assert word in ran.stdout.decode()


MANY = """
import gc
import leadline

for number in range(260):
    with leadline.profile("many.leadline", quiet=True):
        with leadline.region("step"):
            below = leadline.book([("operator", "fusion")], {})
        assert below is not None, number
        assert leadline.book([("kernel", "k")], {"gpu_time": 5}, below=below, device="cuda:0"), number
        assert leadline.book([("region", "r")], {"copy_bytes": 1}, below="thread"), number
        if number % 64 == 63:
            gc.collect()
    losses = leadline.open("many.leadline").losses
    assert not [loss for loss in losses if str(loss.kind) == "internal_error"], (number, losses)
"""


def test_places_are_known_in_every_session_of_a_long_process(place):
    """The upper bits of a place are its session's mark, whatever they are."""
    ran = place.python(str(place.write("program.py", MANY)))
    assert ran.returncode == 0, ran.stderr.decode()
