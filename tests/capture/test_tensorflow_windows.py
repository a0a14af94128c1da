"""What a window of TensorFlow's profiler adds up to, over a small profile that TensorFlow wrote; no TensorFlow needed."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from leadline.capture.providers.tensorflow.allocators import Allocators
from leadline.capture.providers.tensorflow.booking import Booking
from leadline.capture.providers.tensorflow.graphs import Graphs
from leadline.capture.providers.tensorflow.recorded import read
from leadline.capture.providers.tensorflow.runs import Runs, function_name
from leadline.capture.providers.tensorflow.windows import Windows

RECORDED = Path(__file__).parent.parent / "importers" / "recorded" / "tensorflow-2.21.xplane.pb.gz"


class Native:
    """Takes what is booked, by the names of the frames."""

    def __init__(self) -> None:
        self.paths: list[tuple[str, ...]] = [("place",)]
        self.booked: dict[tuple[tuple[str, ...], str], tuple[int, int]] = {}

    def place(self) -> int:
        return 1

    def book(self, below: int, frames: Any, totals: Any, *_where: Any) -> int:
        path = (*(self.paths[below - 1] if below > 0 else ()), *(frame[1] for frame in frames))
        for metric, count, total, *_ in totals:
            before = self.booked.get((path, metric), (0, 0))
            self.booked[path, metric] = (before[0] + count, before[1] + total)
        if path not in self.paths:
            self.paths.append(path)
        return self.paths.index(path) + 1


class Layer:
    """Stands for `tensorflow.python.pywrap_tfe`."""

    @staticmethod
    def TFE_Py_FastPathExecute(context: Any, name: str, *arguments: Any) -> str:
        return f"ran {name}"

    @staticmethod
    def TFE_Py_Execute(context: Any, device: str, name: str, *arguments: Any) -> str:
        if name == "Fails":
            raise ValueError("the program's own")
        return f"ran {name}"


def _summed() -> Windows:
    said: list[str] = []
    windows = Windows(said.append)
    windows._add(gzip.decompress(RECORDED.read_bytes()))
    assert said == []
    return windows


def test_nodes_are_summed_by_the_function_that_ran_them() -> None:
    windows = _summed()
    [(name, sums)] = windows.functions.items()
    assert function_name(name) == "one_step_on_data"
    assert sums.runs == 3
    counts = {kind: values[0] for (_, kind), values in sums.nodes.items() if kind == "_FusedMatMul"}
    assert counts == {"_FusedMatMul": 3}  # of one of its two nodes each
    assert all(0 <= values[2] <= values[1] for values in sums.nodes.values())
    assert any(stage.startswith("Iterator::Root::Prefetch") for stage in windows.stages)
    queued = [values for values in sums.queued.values() if values[0]]
    assert sum(values[0] for values in queued) < sum(values[0] for values in sums.nodes.values()), "others are inline"
    assert all(0 <= values[2] <= values[3] <= values[1] for values in queued)


def test_damaged_windows_are_one_sentence() -> None:
    said: list[str] = []
    windows = Windows(said.append)
    windows._add(gzip.decompress(RECORDED.read_bytes())[:5000])
    assert len(said) == 1 and "could not be read" in said[0]
    assert windows.count == 0


def test_runs_are_counted_whatever_they_end_with_and_everything_is_put_back() -> None:
    native = Native()
    ended: list[str] = []
    originals = dict(vars(Layer))
    runs = Runs(native, lambda name: None, lambda key, began_ns, took_ns: ended.append(key[1]))  # type: ignore[arg-type]
    assert runs.install(Layer)
    for _ in range(3):
        assert Layer.TFE_Py_FastPathExecute(None, "MatMul", 1) == "ran MatMul"
    assert Layer.TFE_Py_Execute(None, "", "__inference_step_4") == "ran __inference_step_4"
    try:
        Layer.TFE_Py_Execute(None, "", "Fails")
    except ValueError as error:
        assert str(error) == "the program's own"
    else:
        raise AssertionError("an error of the program was swallowed")
    assert {name: total[0] for (_, name), total in runs.totals.items()} == {"MatMul": 3, "__inference_step_4": 1}
    assert ended == ["MatMul"] * 3 + ["__inference_step_4"]
    runs.uninstall()
    assert dict(vars(Layer)) == originals


def test_times_of_nodes_are_scaled_to_all_calls_and_booked_once() -> None:
    native, windows = Native(), _summed()
    [name] = windows.functions
    booking = Booking(native, Graphs(""), windows)  # type: ignore[arg-type]
    totals = {(1, name): [300, 3_000_000_000, 1_000, 20_000_000], (1, "MatMul"): [7, 700, 50, 150]}
    assert booking.book(totals, last=True) == 0
    assert booking.book(totals, last=True) == 0  # nothing is new
    assert native.booked[("place", "tf.function(one_step_on_data)"), "call_time"] == (300, 3_000_000_000)
    assert native.booked[("place", "MatMul"), "time"] == (7, 700)
    fused = [
        count for (path, metric), (count, _) in native.booked.items() if path[-1] == "_FusedMatMul" and metric == "time"
    ]
    assert fused == [300, 300]
    queued = sum(count for (_, metric), (count, _) in native.booked.items() if metric == "queue_wait")
    assert queued == sum(100 * values[0] for values in windows.functions[name].queued.values()) > 0


def test_stages_of_tf_data_are_scaled_to_all_elements_that_were_asked_for() -> None:
    native, windows = Native(), _summed()
    asked = windows.stages["Iterator::Root"][0]
    inside = next(name for name in windows.stages if name.startswith("Iterator::Root::"))
    times, whole_ps = windows.stages[inside][:2]
    windows.stages["Iterator::Other"] = [1, 2_000_000, 2_000_000, 2_000_000, 2_000_000]
    booking = Booking(native, Graphs(""), windows)  # type: ignore[arg-type]
    [function] = windows.functions
    windows.functions[function].elsewhere = {("next", "IteratorGetNext"): [3, 9, 3, 3]}  # one in each of three calls
    windows.functions[function].nodes = {}
    totals = {(1, "IteratorGetNextSync"): [asked * 99, 1_000, 1, 100], (2, function): [asked, 100, 1, 100]}
    assert booking.book_stages(totals) == (asked, 100 * asked)
    booked = {path[-1]: told for (path, metric), told in native.booked.items() if metric == "call_time"}
    assert booked["Iterator::Root"][0] == 100 * asked
    assert booked[inside] == (100 * times, round(whole_ps / 10))
    assert booked["Iterator::Other"] == (1, 2_000)  # which nothing that the program asked for tells of


def test_allocators_say_what_was_asked_for_and_what_they_gave() -> None:
    windows = _summed()
    [(name, sums)] = windows.allocators.status().items()
    assert 0 < sums["requested_bytes"] <= sums["given_bytes"]
    assert sums["peak_bytes"] > 0 and 0 < sums["frees"] <= sums["allocations"]
    assert windows.allocators.dataflow() == []  # there is no trace window
    [sentence] = windows.allocators.sentences()
    assert f"allocator {name} gave {sums['given_bytes']:,} bytes" in sentence
    window = read(gzip.decompress(RECORDED.read_bytes()), keep=False)
    traced = Allocators()
    traced.add(window.allocators(10), 5_000)
    traced.add(window.allocators(10), 7_000)
    [history] = traced.dataflow()
    assert history["name"] == name and 2 < len(history["time_ns"]) <= 20
    assert {len(column) for column in history["values"].values()} == {len(history["time_ns"])}
    assert max(history["values"]["bytes in use"]) <= sums["peak_bytes"]
