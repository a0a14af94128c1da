"""`leadline import` of what `perf script` prints: drawn texts in the forms of its releases, and a real recording."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.truth.invariants import contradictions

from leadline.profiles.draw import draw
from leadline.schema import KernelEventKind
from leadline.trace.importers import import_traces
from leadline.trace.tables import TraceError

TEXT = """\
# captured on: a machine
train worker  100/100 [001] 12.000000001:   10101010 cpu-clock:u: \n\
\t    7f01 sgemm_kernel+0x1a (/usr/lib/libopenblas.so.0)
\t    7f02 py::forward:/work/model.py (/tmp/perf-100.map)
\t    7f03 py::main:/work/train.py (/tmp/perf-100.map)

train worker  100/100 [001] 12.010000001:   10101010 cpu-clock:u: \n\
\t    7f04 [unknown] (/usr/lib/libopenblas.so.0)
\t    7f03 py::main:/work/train.py (/tmp/perf-100.map)

:-1   100/107 [000] 12.020000001:   20202020 cpu-clock:u: \n\
\tffffffff8a clear_page+0x7 ([kernel.kallsyms])

"""

TREE = """\
process train worker | cpu_sample=40404040/3
  thread main | cpu_sample=20202020/2
    python main @ /work/train.py | cpu_sample=20202020/2
      python forward @ /work/model.py | cpu_sample=10101010
        native sgemm_kernel @ /usr/lib/libopenblas.so.0 | cpu_sample=10101010
      native  @ /usr/lib/libopenblas.so.0 | cpu_sample=10101010
  thread :-1 | cpu_sample=20202020
    native clear_page @ [kernel.kallsyms] | cpu_sample=20202020
"""


def text(folder: Path, content: str) -> Path:
    path = folder / "perf.txt"
    path.write_text(content)
    return path


def test_stacks_become_paths_and_periods_cpu_time(tmp_path: Path) -> None:
    profile = import_traces([text(tmp_path, TEXT)])
    assert contradictions(profile) == []
    assert draw(profile, ["cpu_sample"], inclusive=True) == TREE
    assert [thread.cpu_ns for thread in profile.threads] == [20_202_020, 20_202_020]
    assert profile.losses == []


def test_counters_keep_perfs_names_and_what_is_none_is_said(tmp_path: Path) -> None:
    content = TEXT.replace("cpu-clock:u", "cycles:P", 1).replace("cpu-clock:u", "skb:kfree_skb", 1)
    profile = import_traces([text(tmp_path, content)])
    assert int(profile.tree.exclusive("cycles").sum.sum()) == 10_101_010
    assert int(profile.tree.exclusive("cpu_sample").sum.sum()) == 20_202_020
    assert [(loss.count, loss.detail) for loss in profile.losses] == [(1, "Events skb:kfree_skb of perf are not read.")]


SCHED = """\
 a b  100/100 [000] 5.000000100:  sched:sched_switch: prev_comm=a b prev_pid=100 prev_prio=120 prev_state=S ==> next_comm=cc1plus next_pid=7 next_prio=120
 cc1plus  7/7 [000] 5.000000300:  sched:sched_waking: comm=a b pid=100 prio=120 target_cpu=001
 cc1plus  7/7 [000] 5.000000400:  sched:sched_switch: cc1plus:7 [120] R+ ==> a b:100 [120]
 a b  100/100 [000] 5.000000500:          1 cpu-clock: \n\tffff f+0x1 (/bin/a)

"""


def test_switches_and_wakings_become_what_the_kernel_did(tmp_path: Path) -> None:
    profile = import_traces([text(tmp_path, SCHED)])
    events = profile.table("kernel_events")
    rows = list(zip(*(events[name].tolist() for name in ("time_ns", "kind", "tid", "target", "value")), strict=True))
    switch, waking = int(KernelEventKind.SWITCH), int(KernelEventKind.WAKING)
    assert rows == [
        (5_000_000_100, switch, 100, 7, 1),
        (5_000_000_300, waking, 7, 100, 1),
        (5_000_000_400, switch, 7, 100, 0),
    ]
    assert profile.losses == []


def test_lines_that_nobody_knows_are_counted_and_text_without_samples_is_refused(tmp_path: Path) -> None:
    profile = import_traces([text(tmp_path, TEXT + "something else\n\tmore of it\n")])
    assert [loss.count for loss in profile.losses] == [2]
    only_switches = "".join(line + "\n" for line in SCHED.splitlines()[:3])
    with pytest.raises(TraceError, match="holds no sample; write it with perf script"):
        import_traces([text(tmp_path, only_switches)])


@pytest.mark.parametrize("cut", range(1, len(TEXT), 37))
def test_text_that_ends_early_gives_what_was_there(tmp_path: Path, cut: int) -> None:
    try:
        profile = import_traces([text(tmp_path, TEXT[:cut])])
    except TraceError:
        return
    assert contradictions(profile) == []


PROGRAM = """
import hashlib
def work():
    data = b"x" * 1_000_000
    for _ in range(300):
        hashlib.sha256(data).digest()
work()
"""


def test_a_real_recording_holds_all_of_its_time_and_the_library_that_took_it(tmp_path: Path) -> None:
    perf = shutil.which("perf")
    if perf is None:
        pytest.skip("perf is not here")
    (tmp_path / "program.py").write_text(PROGRAM)
    record = [perf, "record", "-q", "-e", "cpu-clock:u", "-c", "1000000", "-g", "-o", "perf.data", "--"]
    made = subprocess.run(
        [*record, sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )
    if made.returncode:
        pytest.skip("perf may not record here")
    printed = subprocess.run(
        [perf, "script", "--ns", "-F", "+pid", "-i", "perf.data"],
        cwd=tmp_path, capture_output=True, text=True, timeout=100, check=True,
    ).stdout  # fmt: skip
    profile = import_traces([text(tmp_path, printed)])
    assert contradictions(profile) == []
    samples = sum("cpu-clock" in line for line in printed.splitlines())
    assert int(profile.tree.exclusive("cpu_sample").sum.sum()) == samples * 1_000_000
    assert profile.losses == []
    shares = profile.tree.exclusive("cpu_sample").sum
    in_crypto = sum(int(shares[row]) for row in range(len(profile.tree)) if "libcrypto" in profile.tree.node(row).file)
    assert in_crypto > shares.sum() / 2
