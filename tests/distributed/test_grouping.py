"""Any order and any grouping of joins ends in the same bytes, also by way of files."""

import io
import json
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.analysis.analyze import analyze
from leadline.distributed.merge import merge_files
from leadline.distributed.plan import make_plan
from leadline.distributed.tasks import do, tasks_of
from leadline.profiles import Profile, open_profile, write_profile
from leadline.profiles.build import build
from leadline.profiles.builder import ProfileBuilder
from leadline.profiles.check import check_tables
from leadline.profiles.fold import wide
from leadline.profiles.fold.finish import finished
from leadline.profiles.fold.join import join
from leadline.profiles.fold.restore import restored
from leadline.profiles.fold.state import Fold
from leadline.profiles.fold.wide import bins
from leadline.profiles.writer import add_columns
from leadline.schema import LossKind


@st.composite
def rank_files(choose: st.DrawFn) -> list[Profile]:
    """Ranks whose paths meet often, with values from nothing to the largest there are, threads, devices and losses."""
    profiles = []
    for rank in range(choose(st.integers(1, 5))):
        lines = [
            f"process python train.py | pid={100 + rank} rank={rank} start_ns={choose(st.integers(0, 9))} end_ns=10"
        ]
        lines.append(f"  thread main | tid={100 + rank} wall_ns={choose(st.integers(0, 99))}")
        for thread in range(choose(st.integers(0, 2))):
            lines.append(f"  thread worker-{thread}")
        depth = 2
        for _ in range(choose(st.integers(0, 8))):
            depth = choose(st.integers(2, depth))
            frame = choose(
                st.sampled_from(
                    [
                        "python f @ f.py:3",
                        f"python g @ /m{rank}/site-packages/g.py:4",
                        "operator a",
                        "operator b",
                        "phase forward",
                    ]
                )
            )
            each, count = choose(st.sampled_from([0, 1, 7, 1000, 2**31, 2**40 + 5, 2**54])), choose(st.integers(1, 3))
            place = choose(
                st.sampled_from(
                    ["time", "gpu_time@0:1", f"gpu_time@{rank % 2}:2", "alloc_bytes", "call_time", "peak_live_bytes"]
                )
            )
            lines.append("  " * depth + frame + f" | {place}={each * count}/{count}")
            depth += 1
        losses = [("events_dropped", 1, f"Process {12345 + rank} was full."), ("events_dropped", 2, "No memory.")]
        profile = build("\n".join(lines), losses=losses[: choose(st.integers(1, 2))])
        profile.meta["processes"] = [
            {"pid": 100 + rank, "hostname": f"h{rank % 2}", "wall_ns": rank, "launch": {"world_size": 5}}
        ]
        profiles.append(profile)
    return profiles


def contents(profile: Profile) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        add_columns(archive, profile.tables)
        archive.writestr(zipfile.ZipInfo("meta.json"), json.dumps(profile.meta))
    return buffer.getvalue()


def leaves(folder: Path, profiles: list[Profile]) -> list[Fold]:
    files = []
    for number, profile in enumerate(profiles):
        write_profile(folder / f"{number}.leadline", profile)
        files.append(str(folder / f"{number}.leadline"))
    folds = [do(task, "role").fold for task in tasks_of(make_plan(files))]
    assert len(folds) == len(profiles)
    return [fold for fold in folds if fold is not None]


@given(rank_files(), st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=60, deadline=None)
def test_order_and_grouping_cannot_show(profiles: list[Profile], random, by_files: bool) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        folds = leaves(folder, profiles)
        whole = finished(join(folds))
        check_tables(whole.tables.columns)
        wanted = contents(whole)
        pending = list(folds)
        while len(pending) > 1:
            random.shuffle(pending)
            taken = [pending.pop() for _ in range(random.randint(2, len(pending)))]
            one = join(taken)
            if by_files:
                write_profile(folder / "part", finished(one))
                one = restored(open_profile(folder / "part"), "part")
            pending.append(one)
        assert contents(finished(pending[0])) == wanted
        assert whole.tree.root.inclusive("time").count == sum(one.tree.root.inclusive("time").count for one in profiles)


def test_a_job_keeps_each_sentence_about_what_its_ranks_lost(tmp_path: Path) -> None:
    losses = [("events_dropped", 2, "Process 12345 was full."), ("events_dropped", 1, "No memory.")]
    ranks = [build(f"process train.py | pid={100 + rank} rank={rank}", losses=losses[: rank + 1]) for rank in range(2)]
    job = finished(join(leaves(tmp_path, ranks)))
    told = {one.detail: one.count for one in job.losses if one.kind == LossKind.EVENTS_DROPPED}
    assert told == {"Process * was full.": 4, "No memory.": 1}


def test_merging_merged_files_is_merging_all(tmp_path: Path) -> None:
    from tests.distributed.simulated import write_ranks

    paths = [str(path) for path in write_ranks(tmp_path, 6)]
    for number, some in enumerate((paths[:2], paths[2:5])):
        write_profile(tmp_path / f"part{number}.leadline", merge_files(some).profile)
    parts = [str(tmp_path / f"part{number}.leadline") for number in range(2)]
    together = merge_files([parts[1], paths[5], parts[0]])
    assert contents(together.profile) == contents(merge_files(paths).profile)


@given(st.lists(st.integers(0, wide.MOST), max_size=20))
def test_sums_and_squares_are_exact(values: list[int]) -> None:
    column = np.array(values, np.int64)
    squares = wide.squares_of(column).sum(axis=1, keepdims=True)
    high, low = wide.as_pair(squares)
    assert (int(high[0]) << 64) + int(low[0]) == sum(value**2 for value in values)
    assert np.array_equal(wide.carried(wide.from_pair(high, low)), wide.carried(squares))
    total = wide.sums_of(column).sum(axis=1, keepdims=True)
    assert int(wide.as_int64(total)[0]) == min(sum(values), 2**63 - 1)
    assert float(wide.as_float(squares)[0]) == sum(value**2 for value in values) or values


@given(st.lists(st.floats(0, 2.0**112), min_size=1, max_size=5))
def test_floats_become_whole_numbers_exactly(values: list[float]) -> None:
    high, low = wide.as_pair(wide.limbs_of_floats(np.array(values)))
    found = [(int(a) << 64) + int(b) for a, b in zip(high, low, strict=True)]
    assert found == [int(value) for value in values]


@given(st.integers(0, wide.MOST))
def test_a_value_lies_in_its_bin(value: int) -> None:
    (found,) = bins(np.array([value])).tolist()
    if value < 8:
        assert found == value
    else:
        width = 2 ** (found // 8 - 3)
        assert (8 + found % 8) * width <= value < (9 + found % 8) * width


def test_a_job_knows_how_many_threads_its_devices_run_in_step(tmp_path: Path) -> None:
    """Else no rule could tell that blocks for warps of 32 leave half of AMD's wavefronts empty."""
    detail = {"vendor": "AMD", "architecture": "gfx942", "wavefront": 64, "multiprocessors": 304, "busy_ns": 7}
    files = []
    for rank in range(2):
        builder = ProfileBuilder()
        process = builder.process("train.py", pid=100 + rank, rank=rank, end_ns=10**9)
        device = builder.device(process, 0, "AMD Instinct MI300X", detail=json.dumps(detail))
        node = builder.node_of_thread(builder.thread(process, "MainThread", tid=100 + rank, wall_ns=10**9))
        node = builder.child(node, builder.frame("python", "main", file="train.py", line=7))
        node = builder.child(node, builder.frame("operator", "aten::instance_norm"))
        kernel = builder.child(node, builder.frame("kernel", "instance_norm"))
        for _ in range(20):
            builder.add(node, "time", 100_000)
            builder.add(node, "call_time", 100_000)
            builder.add(kernel, "gpu_time", 45_000_000, device, 7)
            builder.add(kernel, "block_threads", 32, device, 7)
        write_profile(tmp_path / f"{rank}.leadline", builder.profile())
        files.append(str(tmp_path / f"{rank}.leadline"))
    job = finished(join([fold for task in tasks_of(make_plan(files)) if (fold := do(task, "role").fold) is not None]))
    assert {key: value for key, value in job.devices[0].detail.items() if key != "busy_ns"} == {
        key: value for key, value in detail.items() if key != "busy_ns"
    }
    assert [one.rule for one in analyze(job, ["block_shape"])] == ["block_shape"]
