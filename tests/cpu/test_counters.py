"""Counters where CPU samples are taken: on programs that count themselves, and over a processor that is not there."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

FAULTS = """
import mmap, resource

def used():
    now = resource.getrusage(resource.RUSAGE_THREAD)
    return now.ru_minflt + now.ru_majflt, now.ru_nvcsw + now.ru_nivcsw

def touch(pages):
    memory = mmap.mmap(-1, pages * mmap.PAGESIZE)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    for page in range(pages):
        memory[page * mmap.PAGESIZE] = 1
"""


def total(seen, metric: str) -> int:
    return int(seen.profile.tree.exclusive(metric).sum.sum())


def below(seen, metric: str, name: str) -> int:
    tree = seen.profile.tree
    whole = tree.inclusive(metric).sum
    return sum(
        int(whole[node.row])
        for node in tree.walk()
        if node.name == name and name not in {above.name for above in node.path()[:-1]}
    )


def test_page_faults_and_switches_are_the_threads_own(sample) -> None:
    seen = sample(
        FAULTS
        + """
before = used()
def much():
    touch(40_000)
    spin(0.05)
def little():
    spin(0.4)
    touch(2_000)
    spin(0.05)
def waits():
    for _ in range(200):
        time.sleep(0.0005)
    spin(0.05)
spin(0.05)
much()
little()
waits()
after = used()
print(json.dumps([b - a for a, b in zip(before, after)]))
""",
        "--counter",
        "page-faults",
        "--counter",
        "context-switches",
    )
    faults, switches = seen.said
    assert faults >= 42_000 and switches >= 200
    assert faults <= total(seen, "page_faults") <= faults + 30_000  # the interpreter's start is counted, too
    assert below(seen, "page_faults", "much") == pytest.approx(40_000, rel=0.08)
    assert below(seen, "page_faults", "little") == pytest.approx(2_000, rel=0.5)
    assert below(seen, "context_switches", "waits") >= 180
    assert seen.losses() == {}


def test_threads_are_counted_to_their_end_and_pauses_are_not(sample) -> None:
    seen = sample(
        FAULTS
        + """
import leadline
def in_thread():
    touch(20_000)
thread = threading.Thread(target=in_thread)
thread.start()
thread.join()
def paused():
    touch(20_000)
leadline.pause()
paused()
leadline.resume()
print(json.dumps(None))
""",
        "--counter",
        "page-faults",
    )
    assert below(seen, "page_faults", "in_thread") == pytest.approx(20_000, rel=0.1)
    assert below(seen, "page_faults", "paused") < 1_000


def test_the_report_the_query_and_the_sort_know_them(sample, place) -> None:
    # what is after the last sample in `touch` is counted where the next one finds the thread: one period, of many
    sample(
        FAULTS + "def loads():\n    for _ in range(4):\n        touch(30_000)\nloads()\nspin(0.1)\n",
        "--counter",
        "faults",
    )
    text = place.leadline("report", "script.leadline").stdout.decode()
    assert "Counters  " in text and "page-faults" in text and "touch" in text, text
    shown = json.loads(place.leadline("report", "script.leadline", "--format", "json").stdout)
    (counter,) = shown["counters"]
    assert counter["metric"] == "page_faults" and counter["total"] >= 120_000 and counter["per_cpu_second"] > 0
    assert counter["lines"][0]["function"] == "touch" and counter["lines"][0]["count"] > 100_000
    by_faults = place.leadline("report", "script.leadline", "--sort", "page_faults").stdout.decode()
    assert "Hottest call paths by page faults" in by_faults
    asked = place.leadline(
        "query", "script.leadline", "python:touch where page_faults > 1000 show name, page_faults.self"
    )
    assert asked.returncode == 0 and "touch" in asked.stdout.decode(), asked.stderr.decode()
    markdown = place.leadline("report", "script.leadline", "--format", "markdown").stdout.decode()
    assert "### Counters" in markdown


def test_what_cannot_be_counted_is_refused_before_the_program_starts(place) -> None:
    place.write("script.py", "print('ran')")
    result = place.leadline("run", "--counter", "flux", "script.py")
    said = result.stderr.decode()
    assert result.returncode == 2 and result.stdout == b""
    assert (
        said.startswith("leadline: There is no counter named flux; there are page-faults, ") and said.count("\n") == 1
    )


@pytest.fixture
def pmu(place) -> dict[str, str]:
    """Environment with a processor whose counters are made up; its mode is `FAKE_PMU`."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler is installed")
    source = Path(__file__).with_name("fake_pmu.c")
    library = place.folder / "fake_pmu.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", str(source), "-o", str(library), "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}


def counted(place, environment: dict[str, str], mode: str, names: tuple[str, ...] = ("cycles", "instructions")):
    place.write(
        "script.py",
        """
        import threading, time
        def work():  # long beside the time between two samples, which a busy machine stretches
            until = time.thread_time() + 0.8
            while time.thread_time() < until:
                pass
        other = threading.Thread(target=work)
        other.start()
        work()
        other.join()
        """,
    )
    options = [word for name in names for word in ("--counter", name)]
    return place.leadline("run", "-q", *options, "script.py", env={**environment, "FAKE_PMU": mode})


@pytest.mark.parametrize("mode", ["group", "turns"])
def test_counters_of_the_processor_follow_its_work_also_when_they_take_turns(place, pmu, mode) -> None:
    result = counted(place, pmu, mode)
    assert (result.returncode, result.stderr.decode()) == (0, "")
    tree = place.open("script.leadline").tree
    sums = {name: int(tree.exclusive(name).sum.sum()) for name in ("cycles", "instructions", "cpu_sample")}
    assert sums["instructions"] == pytest.approx(2 * sums["cycles"], rel=0.01)
    assert sums["cycles"] == pytest.approx(3 * sums["cpu_sample"], rel=0.1)
    work = sum(int(tree.inclusive("cycles").sum[node.row]) for node in tree.walk() if node.name == "work")
    assert work > 0.7 * sums["cycles"]
    text = place.leadline("report", "script.leadline").stdout.decode()
    assert "2.00 instructions per cycle" in text
    assert ("More counters than the processor has took turns" in text) == (mode == "turns")


def test_a_counter_that_only_reads_zero_is_refused(place, pmu) -> None:
    result = counted(place, pmu, "zero")
    assert result.returncode == 2
    assert result.stderr.decode() == (
        "leadline: The counter cycles reads only zero on this machine; leave it out "
        "(a virtual machine may pretend to have it).\n"
    )


def test_events_of_the_processor_are_counted_by_their_names(place, pmu) -> None:
    result = counted(place, pmu, "group", ("PAPI_TOT_CYC", "r9", "r4", "r9"))
    assert (result.returncode, result.stderr.decode()) == (0, "")
    tree = place.open("script.leadline").tree
    sums = {name: int(tree.exclusive(name).sum.sum()) for name in ("cycles", "named_counter_1", "named_counter_2")}
    assert sums["named_counter_1"] == pytest.approx(3 * sums["cycles"], rel=0.01)
    assert sums["named_counter_2"] == pytest.approx(4 / 3 * sums["cycles"], rel=0.01)
    text = place.leadline("report", "script.leadline").stdout.decode()
    assert "r9" in text and "r4" in text and "named-counter" not in text
    counters = json.loads(place.leadline("report", "script.leadline", "--format", "json").stdout)["counters"]
    assert [(one["name"], one["metric"]) for one in counters] == [
        ("cycles", "cycles"),
        ("r9", "named_counter_1"),
        ("r4", "named_counter_2"),
    ]


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (
            ("r1", "r2", "r3", "r4", "r5"),
            "No more than 4 counters are read by the names of events at a time; leave out r5.",
        ),
        (("PAPI_FP_OPS",), "PAPI_FP_OPS is not one of PAPI's names for a single counter; "),
        (("gpu/event=1/",), "This machine has no counters called gpu, as gpu/event=1/ asks for; "),
    ],
)
def test_an_event_that_cannot_be_counted_is_refused_in_a_sentence(place, pmu, names, sentence) -> None:
    result = counted(place, pmu, "group", names)
    said = result.stderr.decode()
    assert result.returncode == 2 and said.startswith(f"leadline: {sentence}") and said.count("\n") == 1
