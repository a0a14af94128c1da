"""What allocators say of themselves over a window: torch's while it is open, TensorFlow's in profiles of others."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.importers.xspace_files import Line, Plane, space

from leadline.capture.providers.torch.allocator import MOST_LOOKS, AllocatorWatch
from leadline.cli.files import open_profile
from leadline.profiles.builder import ProfileBuilder
from leadline.trace.allocator import IN_USE, History, bins, histories

RECORDED = Path(__file__).parents[1] / "importers" / "recorded"


def of(counters: dict[str, Any], name: str) -> list[int]:
    found: list[int] = counters["value"][counters["name"] == name].tolist()
    return found


def test_a_thinned_history_keeps_its_peaks_and_its_end() -> None:
    chance = np.random.default_rng(3)
    for size in (1, 7, 100, 1001):
        used = np.cumsum(chance.integers(-5, 6, size))
        whole = History(0, "a", np.arange(size) * 10, {IN_USE: used, "other": used * 2})
        short = whole.thinned(20)
        assert short.time_ns.size <= 22
        assert short.values[IN_USE].max() == used.max()
        assert short.values[IN_USE][0] == used[0]
        assert short.values[IN_USE][-1] == used[-1]
        assert (short.values["other"] == 2 * short.values[IN_USE]).all()
        assert (np.diff(short.time_ns) > 0).all()


def test_bins_are_those_of_the_bfc_allocator() -> None:
    found = bins(np.array([256, 511, 512, 1 << 40, 256]), np.array([1, 1, 1, 1, -1]))
    assert found["bin of 256 bytes: blocks in use"].tolist() == [1, 2, 2, 2, 1]
    assert found["bin of 256 bytes: bytes in use"].tolist() == [256, 767, 767, 767, 511]
    assert found["bin of 512 bytes: blocks in use"].tolist() == [0, 0, 1, 1, 1]
    assert found[f"bin of {256 << 20} bytes: blocks in use"].tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize(
    "told",
    [
        None, {}, {"allocators": 3}, {"allocators": [3]}, {"allocators": [{"device": 0}]},
        {"allocators": [{"device": 0, "name": "a", "time_ns": [1, 2], "values": {"x": [1]}}]},
        {"allocators": [{"device": 0, "name": "a", "time_ns": [1], "values": {"x": ["no number"]}}]},
        {"allocators": [{"device": 0, "name": "a", "time_ns": [2**80], "values": {}}]},
    ],
)  # fmt: skip
def test_what_does_not_fit_together_is_left_out(told: Any) -> None:
    assert histories({"dataflow": told}) == []


class Cuda(types.SimpleNamespace):
    """Torch's interface to its allocator, of a device with one segment of 100 bytes."""

    def __init__(self) -> None:
        super().__init__(used=0, asked=0, blocks=[100])

    def is_initialized(self) -> bool:
        return True

    def device_count(self) -> int:
        return 1

    def memory_stats_as_nested_dict(self, device: int) -> dict[str, Any]:
        def pools(value: int) -> dict[str, dict[str, int]]:
            return {pool: {"current": value, "peak": 0} for pool in ("all", "small_pool", "large_pool")}

        return {
            "allocated_bytes": pools(self.used), "reserved_bytes": pools(100), "requested_bytes": pools(self.asked)
        }  # fmt: skip

    def memory_snapshot(self) -> list[dict[str, Any]]:
        free = [{"size": size, "state": "inactive"} for size in self.blocks]
        return [{"device": 0, "blocks": [*free, {"size": 100 - sum(self.blocks), "state": "active_allocated"}]}]


def watched() -> tuple[AllocatorWatch, Cuda, list[bool]]:
    opened = [False]
    watch, cuda = AllocatorWatch(lambda: opened[0]), Cuda()
    watch._cuda = cuda
    return watch, cuda, opened


def test_torchs_allocator_is_asked_while_the_window_is_open() -> None:
    watch, cuda, opened = watched()
    watch.sample()
    assert watch.status() == {}, "no window, nothing kept"
    opened[0] = True
    watch.sample()
    cuda.used, cuda.asked, cuda.blocks = 60, 55, [10, 30]
    watch.sample()
    opened[0] = False
    record = {"dataflow": watch.status()}
    opened[0] = True

    builder = ProfileBuilder()
    process = builder.process("train.py", pid=7, start_ns=100)
    builder.device(process, 0)
    profile = builder.profile()
    profile.meta["processes"] = [{"pid": 7, "started_at_ns": 100, **record}]
    counters = profile.window.counters
    assert of(counters, "torch's allocator: bytes in use") == [0, 60]
    assert of(counters, "torch's allocator: bytes free") == [100, 40]
    assert of(counters, "torch's allocator: bytes wasted") == [0, 5]
    assert of(counters, "torch's allocator: small pool: bytes reserved") == [100, 100]
    assert of(counters, "torch's allocator: bytes of the largest free block") == [100, 30]
    assert of(counters, "torch's allocator: fragmentation, per mille") == [0, 250]
    assert set(counters["device"].tolist()) == {0}


def test_a_long_window_is_looked_at_less_often() -> None:
    watch, cuda, opened = watched()
    opened[0] = True
    for number in range(2 * MOST_LOOKS):
        cuda.used = number
        watch.sample()
    (counted, _) = watch.status()["allocators"]
    assert len(counted["time_ns"]) <= MOST_LOOKS
    assert counted["values"]["bytes in use"][0] == 0
    assert counted["values"]["bytes in use"][-1] == 2 * MOST_LOOKS - 1


def test_a_torch_without_devices_has_no_thread() -> None:
    watch = AllocatorWatch(lambda: True)
    watch.install(types.SimpleNamespace(cuda=Cuda(), version=types.SimpleNamespace(cuda=None, hip=None)))
    assert watch._thread is None
    assert watch.status() == {}


def test_the_bfc_allocator_of_a_profile_of_tensorflow(tmp_path: Path) -> None:
    def told(used: int, asked: int, given: int, address: int, share: float) -> dict[str, int | float | str]:
        return {
            "allocator_name": "GPU_1_bfc", "bytes_allocated": used, "bytes_reserved": 0, "bytes_available": 1000 - used,
            "requested_bytes": asked, "allocation_bytes": given, "addr": address, "fragmentation": share,
        }  # fmt: skip

    events = [
        ("MemoryAllocation", 10, 1, told(256, 200, 256, 1, 0.25)),
        ("MemoryAllocation", 20, 1, told(768, 512, 512, 2, 1)),
        ("MemoryDeallocation", 30, 1, told(512, 200, 256, 1, 0.0)),
    ]
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(space(Plane("/host:CPU", [Line("python", [("step", 0, 50, {}), *events])])))
    counters = open_profile(str(path)).window.counters
    name = "GPU_1_bfc"
    assert of(counters, f"{name}: bytes in use") == [256, 768, 512]
    assert of(counters, f"{name}: bytes available") == [744, 232, 488]
    assert of(counters, f"{name}: fragmentation, per mille") == [250, 1000, 0]
    assert of(counters, f"{name}: bytes wasted") == [56, 56, 0]
    assert of(counters, f"{name}: blocks in use") == [1, 2, 1]
    assert of(counters, f"{name}: bin of 256 bytes: blocks in use") == [1, 1, 0]
    assert of(counters, f"{name}: bin of 512 bytes: bytes in use") == [0, 512, 512]


def test_a_real_profile_of_tensorflow_adds_up() -> None:
    counters = open_profile(str(RECORDED / "tensorflow-2.21.xplane.pb.gz")).window.counters
    used = [name for name in set(counters["name"].tolist()) if name.endswith(": bytes in use") and "bin" not in name]
    assert used
    for name in used:
        allocator = name.removesuffix(": bytes in use")
        blocks = np.array(of(counters, f"{allocator}: blocks in use"))
        by_size = [one for one in set(counters["name"].tolist()) if one.startswith(f"{allocator}: bin of ")]
        in_bins = sum(np.array(of(counters, one)) for one in by_size if one.endswith("blocks in use"))
        assert (blocks == in_bins).all()
        grown = np.diff(of(counters, name))
        change = np.diff(sum(np.array(of(counters, one)) for one in by_size if one.endswith("bytes in use")))
        assert (grown == change).mean() > 0.9, "what its own count grows by is what was taken, where threads take turns"
