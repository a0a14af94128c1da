"""The native tree, accumulators, peak attribution and writer against a dictionary, for any events hypothesis can think of."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cct.reference import Frame, Key, ReferenceTree
from tests.cct.segment import Segment

from leadline import schema

Replay = Callable[..., subprocess.CompletedProcess[str]]

PROCESS = (
    Frame(schema.FrameKind.ROOT, ""),
    Frame(schema.FrameKind.PROCESS, "replayed program", detail='{"pid": 4711, "rank": 3}'),
)
# The ledger alone makes peak_live_bytes.
METRICS = [metric for metric in schema.MetricKind if metric != schema.MetricKind.PEAK_LIVE_BYTES]
NAMES = st.one_of(st.sampled_from(["f", "g", "aten::add", "", "a b;c", "é\n%", "x" * 300]), st.text(max_size=5))
FRAMES = st.builds(
    Frame,
    kind=st.sampled_from([int(kind) for kind in schema.FrameKind][3:]),
    name=NAMES.filter(lambda name: all(not 0xD800 <= ord(char) < 0xE000 for char in name)),
    file=st.sampled_from(["", "a.py", "b.py"]),
    line=st.integers(0, 3),
    first_line=st.integers(0, 1),
    module=st.sampled_from(["", "Linear"]),
    address=st.sampled_from([0, 0, 2**40]),
    detail=st.sampled_from(["", '{"a": 1}']),
)


class Program:
    """The same events as lines for cct_replay and as calls of the reference."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.reference = ReferenceTree(PROCESS)

    def line(self, verb: str, *fields: int | str) -> None:
        encoded = [str(int(part)) if isinstance(part, int) else quote(part, safe="") or "%" for part in fields]
        self.lines.append(" ".join([verb, *encoded]))

    def thread(self, name: str) -> None:
        tid = 1000 + len(self.reference.nodes)
        self.line("thread", tid, name)
        self.reference.thread(Frame(schema.FrameKind.THREAD, name, detail=f'{{"tid": {tid}}}'))

    def node(self, thread: int, parent: int, frame: Frame) -> None:
        self.line("node", thread, parent, *frame)
        self.reference.node(thread, parent, frame)

    def graft(self, thread: int, target_thread: int, target: int) -> None:
        self.line("graft", thread, target_thread, target)
        self.reference.graft(thread, target_thread, target)

    def add(self, thread: int, node: int, key: Key, value: int) -> None:
        self.line("add", thread, node, *key, value)
        self.reference.add(thread, node, key, value)

    def allocate(self, thread: int, node: int, address: int, size: int, device: int) -> None:
        self.line("allocate", thread, node, address, size, device)
        self.reference.allocate(thread, node, address, size, device)

    def release(self, address: int) -> None:
        self.line("release", address)
        self.reference.release(address)

    def event(self, thread: int, node: int, start_ns: int, duration_ns: int, kind: int, size: int) -> None:
        self.line("event", thread, node, start_ns, duration_ns, kind, size)
        self.reference.event(thread, node, start_ns, duration_ns, kind, size)

    def run(self, replay: Replay, output: Path) -> Segment:
        done = replay("\n".join(self.lines) + "\n", output)
        assert done.returncode == 0, done.stderr
        return Segment.read(output)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    program = Program()
    nodes = program.reference.nodes
    for name in draw(st.lists(st.sampled_from(["main", "worker", ""]), min_size=1, max_size=4)):
        program.thread(name)
    frames = draw(st.lists(FRAMES, min_size=1, max_size=6))
    for _ in range(draw(st.integers(0, 60))):
        thread = draw(st.integers(0, len(nodes) - 1))
        node = draw(st.integers(0, len(nodes[thread]) - 1))
        match draw(st.sampled_from("nnnngaaaammmfffe")):
            case "n":
                program.node(thread, node, draw(st.sampled_from(frames)))
            case "g":
                target = draw(st.integers(0, len(nodes) - 1))
                program.graft(thread, target, draw(st.integers(0, len(nodes[target]) - 1)))
            case "a":
                key = Key(draw(st.sampled_from(METRICS)), draw(st.integers(-1, 1)), draw(st.integers(-1, 2)))
                program.add(thread, node, key, draw(st.integers(-(10**6), 10**6)))
            case "m":
                address = draw(st.integers(1, 6))
                program.allocate(thread, node, address, draw(st.integers(0, 9)), draw(st.integers(-1, 1)))
            case "f":
                program.release(draw(st.integers(1, 6)))
            case "e":
                kind = draw(st.sampled_from([int(kind) for kind in schema.EventKind]))
                program.event(thread, node, draw(st.integers(0, 20)), draw(st.integers(-1, 5)), kind, 7)
    return program


def check(program: Program, segment: Segment) -> None:
    reference = program.reference
    paths = segment.paths()
    assert len(set(paths)) == len(paths), "a call path stands in the tree twice"
    assert set(paths) == reference.paths
    expected = reference.metrics(schema.MetricKind.PEAK_LIVE_BYTES)
    found = segment.metrics()
    assert found.keys() == expected.keys()
    for path, keys in expected.items():
        assert found[path].keys() == keys.keys()
        for key, values in keys.items():
            got = found[path][key]
            assert (got.count, got.sum, got.min, got.max) == (values.count, values.sum, values.min, values.max)
            scale = max(1, abs(values.min), abs(values.max))
            assert got.std == pytest.approx(values.std, rel=1e-9, abs=1e-6 * scale)
    if reference.events:
        in_order = segment.events()
        assert sorted(in_order, key=repr) == sorted(reference.events, key=repr)
    else:
        assert "events" not in segment.tables
    losses = segment.tables["losses"]
    unknown = dict(zip(losses["kind"], losses["count"], strict=True))
    assert unknown == ({schema.LossKind.FREE_UNKNOWN: reference.unknown_frees} if reference.unknown_frees else {})


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(program=programs())
def test_any_events_give_the_tree_of_the_reference(program: Program, replay: Replay, tmp_path: Path) -> None:
    check(program, program.run(replay, tmp_path / "a.segment"))


def test_a_long_life_of_allocations_keeps_the_paths_alive_at_the_peak(replay: Replay, tmp_path: Path) -> None:
    """More blocks, releases and peaks than a generated example has."""
    random = np.random.default_rng(5)
    program = Program()
    program.thread("main")
    program.thread("worker")
    for thread in range(2):
        for line in range(20):
            program.node(thread, int(random.integers(0, line + 1)), Frame(3, f"f{line}", "a.py", line))
    for _ in range(3000):
        address = int(random.integers(1, 200))
        if random.random() < 0.55:
            thread, node = int(random.integers(0, 2)), int(random.integers(0, 21))
            program.allocate(thread, node, address, int(random.integers(1, 10**6)), int(random.integers(-1, 2)))
        else:
            program.release(address)
    check(program, program.run(replay, tmp_path / "a.segment"))


def test_every_column_of_the_schema_is_there_with_its_type(replay: Replay, tmp_path: Path) -> None:
    program = Program()
    program.thread("main")
    program.event(0, 0, 1, 2, schema.EventKind.STEP, 0)
    segment = program.run(replay, tmp_path / "a.segment")
    expected = {
        table.name: {column.name: column.dtype for column in table.columns}
        for table in schema.TABLES.values()
        if not table.optional or table.name in segment.tables
    }
    found = {
        table: {name: column.dtype.str for name, column in columns.items()} for table, columns in segment.tables.items()
    }
    assert found == {
        table: {name: np.dtype(dtype).str for name, dtype in columns.items()} for table, columns in expected.items()
    }
    for table, columns in segment.tables.items():
        lengths = {len(column) for column in columns.values()}
        assert len(lengths) == 1 or table == "strings"


def test_process_threads_devices_and_losses_are_told(replay: Replay, tmp_path: Path) -> None:
    program = Program()
    program.thread("main")
    program.thread("pt_autograd_0")
    program.line("stats", 1, 11, 12, 100, 150, 13)
    program.line("device", 4, "NVIDIA H200")
    program.line("loss", int(schema.LossKind.EVENTS_DROPPED), 5, "the window was full")
    segment = program.run(replay, tmp_path / "a.segment")
    paths = segment.paths()

    processes = segment.tables["processes"]
    assert [int(column[0]) for column in (processes["pid"], processes["rank"], processes["complete"])] == [4711, 3, 1]
    assert paths[processes["node"][0]] == PROCESS
    assert segment.string(processes["name"][0]) == "replayed program"

    threads = segment.tables["threads"]
    assert list(threads["tid"]) == [1000, 1001]
    assert [paths[node][-1].name for node in threads["node"]] == ["main", "pt_autograd_0"]
    columns = ("operator_ns", "data_ns", "wall_ns", "cpu_ns")
    assert [[int(threads[name][row]) for name in columns] for row in range(2)] == [[0, 0, 0, 0], [11, 12, 50, 13]]

    devices = segment.tables["devices"]
    assert [(int(devices["index"][0]), segment.string(devices["name"][0]))] == [(4, "NVIDIA H200")]

    losses = segment.tables["losses"]
    assert list(losses["kind"]) == [schema.LossKind.EVENTS_DROPPED]
    assert list(losses["count"]) == [5]
    assert segment.string(losses["detail"][0]) == "the window was full"


def test_at_the_limit_of_nodes_nothing_measured_is_lost(replay: Replay, tmp_path: Path) -> None:
    program = Program()
    program.thread("main")
    for number in range(50):
        program.node(0, number // 2, Frame(3, f"f{number}"))
        program.add(0, number + 1, Key(schema.MetricKind.TIME), 10)
    done = replay("\n".join(program.lines) + "\n", tmp_path / "a.segment", "20")
    assert done.returncode == 0, done.stderr
    segment = Segment.read(tmp_path / "a.segment")
    assert len(segment.tables["nodes"]["parent"]) == 3 + 20
    assert int(segment.tables["metrics"]["sum"].sum()) == 500
    assert list(segment.tables["losses"]["kind"]) == [schema.LossKind.NODES_DROPPED]
    assert list(segment.tables["losses"]["count"]) == [30]


def test_an_output_that_cannot_be_written_is_one_sentence(replay: Replay, tmp_path: Path) -> None:
    done = replay("thread 1 main\n", tmp_path / "missing" / "a.segment")
    assert done.returncode == 1
    assert "could not be created (No such file or directory)" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("events", ["nonsense 1\n", "node 0 0\n", "thread x main\n", "add 7 0 0 0 0 0\n"])
def test_the_driver_refuses_what_it_does_not_understand(replay: Replay, tmp_path: Path, events: str) -> None:
    assert replay(events, tmp_path / "a.segment").returncode == 2
