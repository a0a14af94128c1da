"""What a thread costs that holds the interpreter."""

from __future__ import annotations

import pytest
from tests.analysis.test_findings import MS
from tests.verdict.drawn import held

from leadline.analysis.analyze import analyze
from leadline.analysis.findings import Finding
from leadline.profiles.build import build


@pytest.mark.parametrize(("core_ms", "most_ms"), [(0, 4), (3, 7), (6, 9)])
def test_a_thread_that_gives_up_the_interpreter_gives_up_its_core_too(core_ms, most_ms):
    """It runs 5 ms of a step of 10, so that no more than that of the waits for a core can be for it."""
    (found,) = analyze(held(4, 5, core_ms), ["interpreter_lock"])
    assert found.gain.high_ns == pytest.approx(most_ms * MS, rel=0.01)
    assert ("its core" in found.gain.basis) == (core_ms > 0)


PACKAGES = "/usr/lib/python3.11/site-packages"
WRITER = f"{PACKAGES}/tensorboard/summary/writer/event_file_writer.py"


def of_a_library(*handing_over: str) -> Finding:
    """The same of a thread whose code is all a library's; further lines of the loop's thread."""
    lines = (
        "process train.py | pid=5",
        "  thread MainThread | tid=5 wall_ns=100000000",
        "    python main @ /home/ada/train.py:43",
        f"      operator aten::mm | time={10 * MS}/10 call_time={10 * MS}/10",
        f'      native [waits for the GIL] | detail={{"wait":"gil"}} wait={40 * MS}/10',
        *("    " + one for one in handing_over),
        "    python main @ /home/ada/train.py:44",
        f"      phase optimizer | time={MS}/10 call_time={MS}/10",
        f"    phase step | call_time={90 * MS}/9",
        "  thread python | tid=6 wall_ns=100000000",
        "    python Thread.run @ /usr/lib/python3.11/threading.py:982",
        f"      python _AsyncWriterThread.run @ {WRITER}:244",
        f"        python crc_update @ {PACKAGES}/tensorboard/compat/tensorflow_stub/crc.py:140 | cpu_sample={50 * MS}/10",
    )
    (found,) = analyze(build("\n".join(lines)), ["interpreter_lock"])
    return found


def test_nobody_is_told_to_change_a_function_of_a_library():
    """The line that hands the library its work is where less can be asked of it."""
    found = of_a_library(
        "python log_step @ /home/ada/train.py:56",
        f"  python EventFileWriter.add_event @ {WRITER}:117 | cpu_sample={2 * MS}/2",
    )
    assert found.change_line is not None
    assert (found.change_line.file, found.change_line.line) == ("/home/ada/train.py", 56)
    assert "every n-th step" in found.remedy
    assert "crc_update" not in found.remedy
    assert found.gain.expected_ns > 0


def test_a_thread_of_a_library_that_no_line_is_seen_to_feed_promises_nothing():
    found = of_a_library("python other @ /home/ada/train.py:57", f"  native work | cpu_sample={MS}/1")
    assert found.gain.high_ns == 0
    assert "crc_update" not in found.remedy
