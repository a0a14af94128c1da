"""Against torch.profiler: the same program must give the same counts, and the same time as far as two clocks agree."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from tests.torch.models import MODELS
from torch.profiler import ProfilerActivity, profile

from leadline.report.build import build_report
from leadline.report.model import ReportOptions

STEPS = 3


@pytest.fixture(autouse=True)
def one_thread():
    """torch.profiler does not see what kernels call on OpenMP's threads (attention allocates there); we do."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def counts_of(profiler: profile) -> Counter[str]:
    return Counter({event.key: event.count for event in profiler.key_averages()})


def operator_counts(result) -> Counter[str]:
    """The operator table of the report."""
    report = build_report(result, ReportOptions(top=10_000))
    return Counter({row.name: row.count for row in report.operators})


def without_scopes(counts: Counter[str]) -> Counter[str]:
    """Operators only. Scopes of the user, of the compiler's runtime and functions of TorchScript (`forward`) are none:
    torch.profiler lists them in between, as a report does not."""
    marks = (
        "Optimizer.",
        "enumerate(DataLoader)",
        "ProfilerStep",
        "Pregraph bytecode",
        "AOTDispatcher Runtime Wrapper",
    )
    functions = ("forward", "<forward op>", "<backward op>")
    return Counter({name: n for name, n in counts.items() if not name.startswith(marks) and name not in functions})


@pytest.mark.parametrize("name", MODELS)
def test_counts_equal_torch_profiler(measure, name):
    step = MODELS[name]()
    step()  # what is made once is made before either looks

    with profile(activities=[ProfilerActivity.CPU]) as theirs:
        for _ in range(STEPS):
            step()
    ours = measure(lambda: [step() for _ in range(STEPS)])

    expected = without_scopes(counts_of(theirs))
    assert operator_counts(ours) == expected
    assert sum(expected.values()) > 50
    lost = {loss.kind.name.lower(): loss.count for loss in ours.losses}
    assert "operator_end_unmatched" not in lost


@pytest.mark.parametrize("name", MODELS)
def test_both_at_once_count_right(measure, name):
    step = MODELS[name]()
    step()
    both = {}

    def run() -> None:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True) as theirs:
            for _ in range(STEPS):
                step()
        both["theirs"] = theirs

    ours = measure(run)
    seen = operator_counts(ours)
    for name_of_operator, count in without_scopes(counts_of(both["theirs"])).items():
        if name_of_operator.startswith("["):
            continue  # torch.profiler's own rows, such as [memory]
        assert seen[name_of_operator] == count, name_of_operator


def test_the_programs_own_profiler_may_run_before_during_and_after(measure):
    step = MODELS["mlp"]()
    step()

    def their_counts() -> Counter[str]:
        with profile(activities=[ProfilerActivity.CPU]) as theirs:
            step()
        return without_scopes(counts_of(theirs))

    alone = their_counts()
    during = []

    def run() -> None:
        step()
        during.append(their_counts())
        step()

    ours = operator_counts(measure(run))
    assert during == [alone]
    assert their_counts() == alone
    assert ours == Counter({name: 3 * count for name, count in alone.items()})


def test_time_agrees_where_operators_are_long(measure):
    left, right = torch.randn(512, 512), torch.randn(512, 512)
    both = {}
    waited = []

    def waited_for_a_core() -> int:
        """Nanoseconds that this thread could have run while others had the cores (proc(5): the second figure)."""
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1])

    def run() -> None:
        before = waited_for_a_core()
        with profile(activities=[ProfilerActivity.CPU]) as theirs:
            for _ in range(30):
                torch.mm(left, right)
        waited.append(waited_for_a_core() - before)
        both["theirs"] = theirs

    ours = measure(run)
    theirs_ns = sum(event.cpu_time_total * 1000 for event in both["theirs"].key_averages() if event.key == "aten::mm")
    ours_ns = sum(node.exclusive("call_time").sum for node in ours.tree.find(kind="operator", name="aten::mm"))
    # The same intervals, read by two clocks a callback apart; on a busy machine the core may be lost between the two.
    assert abs(ours_ns - theirs_ns) <= 0.05 * theirs_ns + 30 * 20_000 + waited[0]


@contextmanager
def marked(name):
    """As torch.compile marks its parts: an operator by kind, opened in a generator that is left meanwhile."""
    with torch._C._profiler._RecordFunctionFast(name):
        yield


def test_an_operator_that_outlives_its_frame_is_timed_whole(measure):
    inside = []

    def run() -> None:
        with profile(activities=[ProfilerActivity.CPU]), marked("part"):
            begin = time.perf_counter_ns()
            torch.ones(1)
            while time.perf_counter_ns() - begin < 20_000_000:
                torch.ones(1)
            inside.append(time.perf_counter_ns() - begin)

    calls = [node.exclusive("call_time") for node in measure(run).tree.find(kind="operator", name="part")]
    (call,) = [call for call in calls if call.count]
    assert call.count == 1 and call.sum >= inside[0]


def test_memory_mapped_between_processes_is_counted(measure):
    both = {}

    def run() -> None:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as theirs:
            torch.ones(1000).share_memory_()
        both["sizes"] = [e.nbytes() for e in theirs.profiler.kineto_results.events() if e.name() == "[memory]"]

    root = measure(run).tree.root
    assert root.inclusive("alloc_bytes").sum == sum(size for size in both["sizes"] if size > 0) == 8000
    assert root.inclusive("free_bytes").sum == 8000


def descendants(node):
    for child in node.children:
        yield child
        yield from descendants(child)


def test_inclusive_time_is_the_sum_of_self_times(measure):
    step = MODELS["mlp"]()
    result = measure(step)
    for node in result.tree.find(kind="operator"):
        own = node.exclusive("call_time")
        if not own.count or "backward" in {step.name for step in descendants(node)}:
            continue  # what is below a backward phase ran at another time
        inclusive = node.inclusive("time").sum
        assert inclusive <= own.sum
        assert own.min <= own.mean <= own.max
