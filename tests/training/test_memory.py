"""Memory that runs out leaves a page of who holds what: on a CPU for real, of CUDA's allocator over drawn snapshots."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import leadline
from leadline.analysis.memorysnapshot import SnapshotError, read_snapshot
from leadline.capture.training import memory_watch
from leadline.capture.training.memory_watch import MemoryWatch, is_out_of_memory
from leadline.report.training import summarize
from leadline.report.training.markdown import render

torch = pytest.importorskip("torch", reason="its allocator runs out")
PROGRAM = textwrap.dedent("""
    import resource, sys, torch, leadline
    torch.set_num_threads(1)
    profiler = leadline.build_profiler(enable=True, start_step=0, end_step=2, trace_dir=sys.argv[1], rank=0)
    kept = []
    def hoard():
        kept.append(torch.zeros(1 << 24))
    def modest():
        kept.append(torch.ones(1 << 20))
    def train():
        for step in range(100):
            modest()
            hoard()
            profiler.step(step)
    used = int(open("/proc/self/statm").read().split()[0]) * 4096
    profiler.start(0)
    resource.setrlimit(resource.RLIMIT_AS, (used + (700 << 20), resource.RLIM_INFINITY))
""")


@pytest.mark.parametrize("way", ["nobody catches it", "with block", "the program's own hook"])
def test_memory_of_the_cpu_runs_out(way: str, tmp_path: Path) -> None:
    ends = {
        "nobody catches it": "train()\n",
        "with block": "profiler.stop(); profiler = leadline.build_profiler(profiler.config, rank=0)\n"
        "with profiler:\n    train()\n",
        "the program's own hook": "sys.excepthook = lambda *error: print('mine', error[0].__name__)\n"
        "profiler.stop(); profiler = leadline.build_profiler(profiler.config, rank=0); profiler.start(0)\ntrain()\n",
    }
    (tmp_path / "program.py").write_text(PROGRAM + ends[way])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py"), str(tmp_path / "out")],
        capture_output=True, text=True, env=environment, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "out of memory; " in done.stderr
    if way == "the program's own hook":
        assert "mine RuntimeError" in done.stdout
    else:
        assert "can't allocate memory" in done.stderr, "the program's own traceback"
    profile = max((tmp_path / "out").glob("*.leadline"), key=lambda path: path.stat().st_mtime_ns)
    assert json.loads(profile.with_suffix(".json").read_text())["out_of_memory"]["step"] > 1
    summary = summarize(profile)
    assert "DefaultCPUAllocator" in summary.out_of_memory
    most, less = summary.holders[:2]
    assert (most.operator, most.place.split(":")[0], less.operator) == ("aten::zeros", "program.py", "aten::ones")
    assert most.held % (1 << 26) == 0
    assert most.held > 10 * less.held
    if "lists what held memory (from" in done.stderr and ".oom.md" in done.stderr:
        assert "program.py" in profile.with_suffix(".oom.md").read_text()


def test_what_is_an_out_of_memory() -> None:
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."))
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes."))
    assert not is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not is_out_of_memory(ValueError("out of memory"))
    assert not is_out_of_memory(None)


def test_another_error_is_not_our_matter(tmp_path: Path) -> None:
    before = sys.excepthook
    with pytest.raises(ValueError, match="mine"), leadline.build_profiler(enable=True, trace_dir=str(tmp_path), rank=0):
        raise ValueError("mine")
    assert sys.excepthook is before
    (side,) = tmp_path.glob("*.json")
    assert json.loads(side.read_text())["out_of_memory"] is None


def block(size: int, requested: int, state: str, *frames: tuple[str, int, str]) -> dict[str, object]:
    listed = [{"filename": file, "line": line, "name": name} for file, line, name in frames]
    return {"address": 0, "size": size, "requested_size": requested, "state": state, "frames": listed}


def drawn(*blocks: dict[str, object]) -> dict[str, object]:
    """As torch.cuda.memory._snapshot returns it."""
    address = 0
    for one in blocks:
        one["address"] = address
        address += one["size"]
    segment = {
        "device": 0, "address": 0, "total_size": address, "stream": 0, "segment_type": "large", "is_expandable": False,
        "allocated_size": 0, "active_size": 0, "requested_size": 0, "segment_pool_id": (0, 0), "frames": [],
        "blocks": list(blocks),
    }  # fmt: skip
    oom = {"action": "oom", "device_free": 0, "size": 1 << 20, "stream": 0, "time_us": 1, "frames": []}
    return {"segments": [segment], "device_traces": [[oom]], "allocator_settings": {}, "external_annotations": []}


def allocates() -> list[object]:
    return [torch.zeros(1 << 16) for _ in range(2)]


def test_a_snapshot_of_the_device_is_joined_with_our_paths(tmp_path: Path) -> None:
    path = tmp_path / "host_rank0_20260101T000000Z.leadline"
    with leadline.profile(path, memory=True):
        held = allocates()
    code = allocates.__code__
    line, here = code.co_firstlineno + 1, code.co_filename
    stack = [
        ("/x/site-packages/torch/functional.py", 3, "zeros"),
        (here, line, "<listcomp>"),
        (here, line, "allocates"),
    ]
    snapshot = drawn(
        block(1 << 20, 1_000_000, "active_allocated", *stack),
        block(1 << 21, 1 << 21, "active_allocated", *stack),
        block(1 << 22, 0, "inactive"),
        block(512, 512, "active_awaiting_free"),
    )
    from torch.cuda import _memory_viz

    assert "MiB" in _memory_viz.segsum(snapshot), "torch reads it too"
    place = path.with_suffix(".snapshot.pickle")
    place.write_bytes(pickle.dumps(snapshot))
    found = read_snapshot(place, leadline.open(str(path)).tree)
    (allocator,) = found.allocators
    assert (allocator.reserved, allocator.live) == ((1 << 20) + (1 << 21) + (1 << 22) + 512, (3 << 20) + 512)
    assert (allocator.rounding, allocator.largest_free) == ((1 << 20) - 1_000_000, 1 << 22)
    most = found.live[0]
    assert (most.file, most.line, most.size, most.blocks) == (here, line, 3 << 20, 2)
    assert found.live[-1].file == "", "made before the history began"
    summary = summarize(path)
    assert summary.allocators == found.allocators
    assert "4.00 MiB kept free, 4.00 MiB of it in one piece" in render(summary)
    del held


def test_a_stack_finds_its_node_though_the_program_was_started_by_another(tmp_path: Path) -> None:
    from leadline.profiles.build import build

    profile = build("""
        python main @ train.py:3
          python forward @ model.py:7
            operator aten::zeros
    """)
    place = tmp_path / "a.pickle"
    frames = [("model.py", 7, "forward"), ("train.py", 3, "main"), ("/usr/bin/torchrun.py", 1, "<module>")]
    place.write_bytes(pickle.dumps(drawn(block(512, 512, "active_allocated", *frames))))
    (live,) = read_snapshot(place, profile.tree).live
    assert profile.tree.node(live.row).file == "model.py"


class Evil:
    def __reduce__(self):
        return (os.mkdir, ("made",))


@pytest.mark.parametrize("content", [b"", b"rubbish", pickle.dumps([1]), pickle.dumps({"segments": [{"blocks": 3}]})])
def test_what_is_no_snapshot_is_a_sentence(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.pickle").write_bytes(content)
    with pytest.raises(SnapshotError, match="is no snapshot of torch's allocator"):
        read_snapshot(tmp_path / "a.pickle")


def test_a_pickle_that_would_run_code_does_not(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.pickle").write_bytes(pickle.dumps({"segments": Evil()}))
    with pytest.raises(SnapshotError, match=r"it holds a posix\.mkdir"):
        read_snapshot(tmp_path / "a.pickle")
    assert not (tmp_path / "made").exists()


class FakeCuda:
    """What of torch.cuda the watch uses."""

    def __init__(self) -> None:
        self.memory = self
        self.calls: list[object] = []

    def _record_memory_history(self, enabled: object = "all", **options: object) -> None:
        self.calls.append(enabled)

    def _snapshot(self) -> dict[str, object]:
        self.calls.append("snapshot")
        return drawn(block(512, 512, "active_allocated"))


def test_the_allocators_history_runs_while_the_profiler_does(tmp_path: Path, monkeypatch) -> None:
    cuda = FakeCuda()
    monkeypatch.setattr(memory_watch, "_cuda", lambda: cuda)
    observers: list[object] = []
    monkeypatch.setattr(torch._C, "_cuda_attach_out_of_memory_observer", observers.append, raising=False)
    watch = MemoryWatch(lambda error: None, history=True)
    watch.install()
    observers[0](0, 1 << 20, 0, 0)
    observers[0](0, 1 << 20, 0, 0)
    assert watch.keep(tmp_path / "a.snapshot.pickle") == tmp_path / "a.snapshot.pickle"
    watch.uninstall()
    observers[0](0, 1 << 20, 0, 0)
    assert cuda.calls == ["all", "snapshot", None], "the first failure counts, and none after the end"
    assert read_snapshot(tmp_path / "a.snapshot.pickle").allocators[0].live == 512


def test_without_a_device_there_is_no_snapshot(tmp_path: Path) -> None:
    profiler = leadline.build_profiler(enable=True, trace_dir=str(tmp_path), rank=0, memory_history=True)
    profiler.start(0)
    assert profiler.snapshot_memory() is None
    profiler.stop()


def test_memory_of_two_processes_is_no_sum(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="its memory is measured")
    program = tmp_path / "loader.py"
    program.write_text(
        textwrap.dedent("""
            import sys, torch, leadline

            class Items(torch.utils.data.Dataset):
                def __len__(self):
                    return 8

                def __getitem__(self, number):
                    return torch.ones(1 << 16)

            profiler = leadline.build_profiler(enable=True, start_step=0, end_step=2, trace_dir=sys.argv[1])
            profiler.start(0)
            kept = []
            for step, batch in enumerate(torch.utils.data.DataLoader(Items(), batch_size=4, num_workers=1)):
                kept.append(torch.cat([batch] * 4))
                profiler.step(step)
            profiler.stop()
        """)
    )
    command = [sys.executable, str(program), str(tmp_path / "profiles")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    summary = summarize(next((tmp_path / "profiles").glob("*.leadline")))
    assert [name for name, _ in summary.peaks] == ["CPU"]
    assert sum(holder.held for holder in summary.holders) == summary.peaks[0][1] > 8 << 20
