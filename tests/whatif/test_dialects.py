"""One program in every dialect of Kineto gives one graph and one set of answers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dialects import CPU_DIALECTS, DIALECTS, LOAD_US, STEP_US, Dialect, Event, program, write

from leadline.trace.kineto import read_kineto
from leadline.trace.source import sources
from leadline.trace.tables import Kind
from leadline.whatif import Graph, Phase, TaskKind, load, predict, rank, simulate

REFERENCE = DIALECTS[0]


def graph_in(dialect: Dialect, folder: Path, **changes: float) -> Graph:
    path = folder / "trace.json"
    path.write_text(json.dumps(write(program(device=dialect.device, **changes), dialect)))  # type: ignore[arg-type]
    return load(path)


def rows_of(graph: Graph, *, layers: bool) -> list[tuple[object, ...]]:
    """What the graph says, in time order, without the order in which lanes were found and without vendors' prefixes."""
    order = np.argsort(graph.column("order"), kind="stable")
    found = []
    for task in order.tolist():
        row = graph.task(task)
        name = row.name.replace("hip", "cuda", 1)
        lane = graph.lanes[row.lane]
        entry = (row.kind, lane.kind, lane.number, name, row.duration_ns, row.gap_ns, row.start_ns, row.phase, row.step)
        found.append((*entry, row.layer.replace("hip", "cuda", 1)) if layers else entry)
    return found


@pytest.mark.parametrize("dialect", [*DIALECTS[1:], CPU_DIALECTS[1]], ids=lambda dialect: dialect.name)
def test_every_dialect_gives_the_same_graph(dialect: Dialect, tmp_path: Path) -> None:
    reference = REFERENCE if dialect.device else CPU_DIALECTS[0]
    expected = graph_in(reference, tmp_path)
    found = graph_in(dialect, tmp_path)
    # a trace without modules has other layers, and without numbers or flows backward work has no layer
    layers = dialect.modules and dialect.sequence
    assert rows_of(found, layers=layers) == rows_of(expected, layers=layers)
    edges = [np.stack([graph.edges[name] for name in ("type", "latency_ns")]) for graph in (found, expected)]
    assert np.array_equal(*(np.sort(np.unique(edge, axis=1), axis=1) for edge in edges))
    assert found.info.devices == expected.info.devices
    assert simulate(found).makespan_ns == simulate(expected).makespan_ns


@pytest.mark.parametrize("dialect", DIALECTS[1:], ids=lambda dialect: dialect.name)
def test_every_dialect_gives_the_same_answers(dialect: Dialect, tmp_path: Path) -> None:
    expected = {item.title: item.speedup for item in rank(graph_in(REFERENCE, tmp_path)).scenarios}
    found = {item.title: item.speedup for item in rank(graph_in(dialect, tmp_path)).scenarios}
    if not dialect.shapes:  # these need them
        lacking = {"batch_size 2x", "amp", "fused_optimizer", "fuse_elementwise"}
        expected = {name: value for name, value in expected.items() if name not in lacking}
    if not dialect.modules or not (dialect.sequence or dialect.flows):  # and these layers with both passes
        by_layer = ("activation_checkpointing", "gist lossless")
        expected = {name: value for name, value in expected.items() if name not in by_layer}
    assert {name: found[name] for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize("dialect", [*DIALECTS, *CPU_DIALECTS], ids=lambda dialect: dialect.name)
def test_a_third_of_the_step_is_loading(dialect: Dialect, tmp_path: Path) -> None:
    graph = graph_in(dialect, tmp_path)
    loading = graph.select(phase=Phase.DATA_LOADING)
    spent = graph.column("duration_ns")[loading.ids] + np.maximum(graph.column("gap_ns")[loading.ids], 0)
    # with the little Python around it
    assert spent.sum() / len(graph.info.steps) == pytest.approx((LOAD_US - 100) * 1000, rel=0.03)
    (never,) = predict(graph, ["data_loading"]).scenarios
    assert never.speedup == pytest.approx(STEP_US / (STEP_US - LOAD_US), rel=0.02)
    assert graph.select(kind=TaskKind.DATA)


@pytest.mark.parametrize("dialect", [*DIALECTS, *CPU_DIALECTS], ids=lambda dialect: dialect.name)
def test_more_workers_in_every_dialect(dialect: Dialect, tmp_path: Path) -> None:
    """Zero against three workers: a batch then takes a third of its time, so the loop never waits for it."""
    graph = graph_in(dialect, tmp_path)
    (predicted,) = predict(graph, ["data_loading"], {"workers": "3"}).scenarios
    after = graph_in(dialect, tmp_path, load_us=900.0)
    assert predicted.low_ns <= after.info.measured_ns / len(after.info.steps) <= predicted.high_ns


@pytest.mark.parametrize("dialect", [REFERENCE, DIALECTS[2], *CPU_DIALECTS], ids=lambda dialect: dialect.name)
def test_without_step_marks(dialect: Dialect, tmp_path: Path) -> None:
    graph = graph_in(replace(dialect, step_marks=False), tmp_path)
    assert graph.info.facts["steps_found_by"] == "repetition"
    assert len(graph.info.steps) == len(graph_in(dialect, tmp_path).info.steps)
    assert graph.select(kind=TaskKind.DATA)


def test_a_range_of_the_users_own_is_no_operator_in_2021(tmp_path: Path) -> None:
    for dialect in (REFERENCE, DIALECTS[2]):
        path = tmp_path / "trace.json"
        path.write_text(json.dumps(write(program(), dialect)))
        trace = read_kineto(next(iter(sources(path))))
        (place,) = [row for row, name in enumerate(trace.strings) if name == "my forward"]
        assert set(trace.events["kind"][trace.events["name"] == place].tolist()) == {Kind.REGION}


def decoding(layers: int, *, modules: bool) -> list[Event]:
    """One step of a model of many equal layers: an embedding, the layers, a large product and a choice at the end."""
    found = [Event("operator", "aten::embedding", 10, 900)]
    at = 1000.0
    for layer in range(layers):
        if modules:
            found.append(Event("module", f"DecoderLayer_{layer}", at, 480))
        found += [Event("operator", name, at + 20 + 110 * place, 100)
                  for place, name in enumerate(("aten::rms_norm", "aten::linear", "aten::silu", "aten::add"))]  # fmt: skip
        at += 500
    found.append(Event("operator", "aten::matmul", at, 3000))
    found.append(Event("operator", "aten::argmax", at + 3100, 200))
    return found


@pytest.mark.parametrize("modules", [True, False])
def test_layers_of_one_step_are_not_steps(modules: bool, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(write(decoding(12, modules=modules), CPU_DIALECTS[0])))
    graph = load(path)
    assert graph.info.facts["steps_found_by"] == "whole trace"
    assert len(graph.info.steps) == 1
    assert any("repeat 12 times, but" in text or "repeat 13 times, but" in text for text in graph.info.warnings)


def test_two_programs_in_one_trace_are_said(tmp_path: Path) -> None:
    content = write(program(), REFERENCE)
    other = [{**event, "pid": 999} for event in content["traceEvents"] if event["cat"] in ("cpu_op", "user_annotation")]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({**content, "traceEvents": [*content["traceEvents"], *other]}))
    assert any("2 processes of this trace run a training loop" in text for text in load(path).info.warnings)
    assert not any("run a training loop" in text for text in graph_in(REFERENCE, tmp_path).info.warnings)


@pytest.mark.parametrize("share", [0.5, 0.3])
def test_half_a_step_is_one_step_with_a_wide_range(share: float, tmp_path: Path) -> None:
    events = [event for event in program(steps=1) if event.begin + event.length < share * STEP_US]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(write(events, REFERENCE)))
    graph = load(path)
    assert len(graph.info.steps) == 1
    assert any("whole trace counts as one step" in text for text in graph.info.warnings)
    forward = bool(graph.select(phase=Phase.FORWARD))
    assert forward == (share == 0.5)
    assert any("autograd noted" in text for text in graph.info.warnings) == forward
    for found in rank(graph).scenarios:
        assert found.high_ns / found.low_ns > 1.1, found.title
        assert not forward or found.samples != 1 or found.low_gain <= 1.01, found.title


def test_inference_that_keeps_nothing_for_a_backward_pass_is_whole(tmp_path: Path) -> None:
    """The same forward pass without autograd's numbers is no part of a training step."""
    events = [replace(event, sequence=-1) for event in program(steps=1) if event.begin + event.length < 0.5 * STEP_US]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(write(events, REFERENCE)))
    assert not any("a part of a training step" in text for text in load(path).info.warnings)


@pytest.mark.parametrize("dialect", [REFERENCE, CPU_DIALECTS[0]], ids=lambda dialect: dialect.name)
def test_a_trace_that_begins_inside_a_step_leaves_its_rest_out(dialect: Dialect, tmp_path: Path) -> None:
    """Marks of the optimizer alone, from the middle of the first step's forward pass on."""
    whole = program(device=dialect.device)
    forward = {event.sequence for event in whole if event.begin < 0.4 * STEP_US} - {-1}
    cut = [event for event in whole if event.begin > 0.4 * STEP_US]
    cut = [
        replace(event, sequence=-1, forward_thread=-1) if event.sequence in forward else event for event in cut
    ]  # it is not there
    graphs = []
    for events in (whole, cut):
        content = write([event for event in events if not event.name.startswith("ProfilerStep")], dialect)
        path = tmp_path / "trace.json"
        path.write_text(json.dumps(content))
        graphs.append(load(path))
    full, rest = (graph.info for graph in graphs)
    assert rest.facts["steps_found_by"] == "optimizer"
    assert full.steps == (0, *rest.steps)
    assert rest.step_ns[1:] == full.step_ns[2:]
    assert any("begins inside a step" in text for text in rest.warnings)
    assert not any("begins inside a step" in text for text in full.warnings)


UNKNOWN = {"cpu_op": "op", "kernel": "gpu_op", "cuda_runtime": "api", "user_annotation": "annotation"}


def with_categories(renamed: dict[str, str], folder: Path) -> Graph:
    content = write(program(), REFERENCE)
    for event in content["traceEvents"]:
        event["cat"] = renamed.get(event["cat"], event["cat"])
    path = folder / "trace.json"
    path.write_text(json.dumps(content))
    return load(path)


def test_a_dialect_that_is_not_known_is_told_by_names_and_numbers(tmp_path: Path) -> None:
    """Every category has another name: device work has a stream and its launch's number, marks are torch's."""
    graph, known = with_categories(UNKNOWN, tmp_path), graph_in(REFERENCE, tmp_path)
    assert graph.info.step_ns == known.info.step_ns
    kernels = graph.select(kind=TaskKind.GPU), known.select(kind=TaskKind.GPU)
    assert len(kernels[0]) == len(kernels[1]) > 0
    assert any("category that is not known here" in text and "'op'" in text for text in graph.info.warnings)


def test_what_nothing_tells_is_said_and_doubted(tmp_path: Path) -> None:
    """Events of an unknown category without a number or a name that says what they are: no gain is sure."""
    content = write(program(), REFERENCE)
    for event in content["traceEvents"]:
        if event["cat"] == "cpu_op":
            event["cat"], event["name"] = "op", event["name"].replace("aten::", "lib::")
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(content))
    graph = load(path)
    assert any("are left out, and every range is wider" in text for text in graph.info.warnings)
    found = rank(graph).scenarios
    assert found
    assert all(item.low_gain <= 1.05 for item in found if item.speedup < 1.3)


def test_a_part_of_a_training_step_promises_nothing(tmp_path: Path) -> None:
    """Backward work without a weight update and without marks."""
    begin, end = STEP_US * 0.35, STEP_US * 0.85
    events = [event for event in program(steps=1) if begin < event.begin and event.begin + event.length < end]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(write(events, replace(REFERENCE, step_marks=False))))
    graph = load(path)
    assert any("a part of a training step only" in text for text in graph.info.warnings)
    assert all(found.low_gain <= 1.01 for found in rank(graph).scenarios if found.samples == 1)
