"""The reader of torch's snapshots against `pickle` itself, and against files that are torn, foreign or hostile."""

from __future__ import annotations

import io
import pickle
import random

import numpy as np
import pytest

from leadline.trace.snapshot_file import DAMAGE, NotPlainError, SnapshotFile


def some(draw: random.Random, depth: int = 0) -> object:
    """Any plain data; tuples are read as lists."""
    kinds = ["none", "bool", "int", "float", "text"] + (["list", "dict", "same"] if depth < 4 else [])
    kind = draw.choice(kinds)
    if kind == "none":
        return None
    if kind == "bool":
        return draw.random() < 0.5
    if kind == "int":
        return draw.choice((0, 1, 255, 256, 65536, -1, -(2**31), 2**31, -(2**63), 2**63, 2**64 - 1))
    if kind == "float":
        return draw.uniform(-1e9, 1e9)
    if kind == "text":
        return draw.choice(("", "a", "ü" * 300, "frames", "action"))
    if kind == "same":
        one = some(draw, depth + 1)
        return [one, one, [one]]
    if kind == "list":
        return [some(draw, depth + 1) for _ in range(draw.choice((0, 1, 2, 5, 1001 if depth < 2 else 3)))]
    return {f"key {i}": some(draw, depth + 1) for i in range(draw.randint(0, 5))}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_data_is_what_pickle_reads(protocol: int) -> None:
    for seed in range(25):
        draw = random.Random(seed)
        value = some(draw)
        stream = io.BytesIO(pickle.dumps({"segments": [value]}, protocol))
        assert SnapshotFile(stream).segments == [value], seed


def history(count: int) -> list[dict[str, object]]:
    draw = random.Random(count)
    frames = [{"name": f"f{i}", "filename": "a.py", "line": i} for i in range(9)]
    return [
        {"action": draw.choice(("alloc", "free_completed", "oom")), "addr": draw.choice((2**63 + i, 64 * i)),
         "size": draw.randint(0, 2**33), "stream": 0, "time_us": 10**15 + i, "compile_context": f"N/A {i}",
         "frames": [draw.choice(frames) for _ in range(draw.randint(0, 4))]}
        for i in range(count)
    ]  # fmt: skip


def read(content: object) -> SnapshotFile:
    return SnapshotFile(io.BytesIO(pickle.dumps(content)))


def test_a_history_is_columns() -> None:
    actions = history(2500)
    file = read({"segments": [], "device_traces": [[], actions]})
    empty, trace = file.traces
    assert empty.size.size == 0
    names = {row: name for name, row in trace.names.items()}
    assert [names[row] for row in trace.action.tolist()] == [one["action"] for one in actions]
    assert [one + 2**63 for one in trace.address.tolist()] == [one["addr"] for one in actions]
    assert trace.size.tolist() == [one["size"] for one in actions]
    assert trace.time_us.tolist() == [one["time_us"] for one in actions]
    assert [file.frames(one) for one in trace.stack.tolist()] == [one["frames"] for one in actions]


def test_equal_stacks_are_one() -> None:
    actions = [{**one, "frames": [dict(frame) for frame in one["frames"]]} for one in history(600)]
    (trace,) = read({"segments": [], "device_traces": [actions]}).traces
    texts = {str(one["frames"]) for one in actions}
    assert np.unique(trace.stack).size == len(texts)


def test_a_file_that_is_torn_or_changed_gives_data_or_one_error() -> None:
    whole = pickle.dumps({"segments": [{"blocks": []}], "device_traces": [history(60)]})
    draw = random.Random(5)
    for _ in range(600):
        torn = bytearray(whole[: draw.randint(1, len(whole))] if draw.random() < 0.3 else whole)
        for _ in range(draw.randint(0, 4)):
            torn[draw.randrange(len(torn))] = draw.randrange(256)
        try:
            SnapshotFile(io.BytesIO(bytes(torn)))
        except DAMAGE:
            continue


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_class_is_named_and_never_made(protocol: int) -> None:
    with pytest.raises(NotPlainError, match=r"pathlib\.\w*Path"):
        SnapshotFile(io.BytesIO(pickle.dumps({"segments": [], "x": __import__("pathlib").Path("a")}, protocol)))


@pytest.mark.parametrize(
    "hostile",
    [
        b"\x80\x04" + b"]\x94" * 300 + b"a" * 299 + b".",  # deep
        b"\x80\x04]\x94h\x00a.",  # holds itself
        b"\x80\x04\x8d" + b"\xff" * 8 + b"a.",  # a text of 16 EiB
        b"\x80\x04\x8b\xff\xff\xff\xffa.",  # a number of 4 GiB
        b"\x80\x04Nr\xff\xff\xff\xff.",  # a place far away
        b"\x80\x04a.", b"\x80\x04(.", b"\x80\x04u.", b"\x80\x04e.", b"\x80\x04h\x00.", b"\x80\x04\x87.", b".", b"",
    ],
)  # fmt: skip
def test_hostile_files_are_an_error(hostile: bytes) -> None:
    with pytest.raises(DAMAGE):
        SnapshotFile(io.BytesIO(hostile))
