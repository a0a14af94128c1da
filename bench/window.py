"""What a trace window costs an autoencoder and a convolutional network, beside the table that its paper printed.

    python bench/window.py [--rounds 21] [--steps 20] [--results FOLDER]

One process and one thread; modes take random turns. Of each turn the fastest of some stretches of steps counts, in CPU
time of the thread, against the unprofiled turn of its round. Events of the kernel cost the program what bench/kernel.py
measured for one, times their number, since a few of them do not show in a percentage. The two models are of the size
that gave the paper's steps of 6 and 13 ms.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import nn

import leadline
from common import Spread, add_results_option, machine, markdown_table, write_results
from leadline.capture.kernel.recording import Refused
from leadline.capture.kernel.tracefs import TracefsRecorder
from leadline.trace.kernel import tracefs
from recorder import event_costs

GOALS = {"window": 10.0, "window and kernel": 20.0}  # percent
STRETCHES = 5
BATCH = {"autoencoder": 128, "cnn": 32}
# Zins & Dagenais, tables III to VIII, percent of the unprofiled run: dataflow, all of the user's side, with the kernel
PAPER = {
    "autoencoder": {"ROCm": (4.0, 17.8, 22.6), "CUDA": (1.1, 38.3, 45.8), "SYCL": (3.5, 16.4, None)},
    "cnn": {"ROCm": (2.8, 10.8, 12.5), "CUDA": (0.8, 9.0, 16.6), "SYCL": (1.4, 2.7, None)},
}


def autoencoder() -> nn.Module:
    sizes = (784, 256, 128, 256, 784)
    layers: list[nn.Module] = []
    for came, goes in itertools.pairwise(sizes):
        layers += [nn.Linear(came, goes), nn.Sigmoid()]
    return nn.Sequential(*layers)


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)),
        *(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * 7 * 7, 256), nn.ReLU(), nn.Dropout(0.25), nn.Linear(256, 10)),
    )


def training(name: str) -> Callable[[], None]:
    """A step of training on digits that nobody wrote."""
    torch.manual_seed(0)
    model = autoencoder() if name == "autoencoder" else cnn()
    optimizer = torch.optim.Adam(model.parameters())
    pictures, labels = torch.rand(BATCH[name], 784), torch.randint(10, (BATCH[name],))

    def step() -> None:
        optimizer.zero_grad()
        made = model(pictures)
        if name == "autoencoder":
            loss = nn.functional.mse_loss(made, pictures)
        else:
            loss = nn.functional.cross_entropy(made, labels)
        loss.backward()
        optimizer.step()

    return step


class Modes:
    """Ways to run a stretch of steps; the events of the last turn of each are kept for counting."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "x.leadline"
        self.user_events = 0
        self.kernel_events: dict[str, int] = {}

    @contextlib.contextmanager
    def tree(self) -> Iterator[None]:
        with leadline.profile(self._file, quiet=True):
            yield

    @contextlib.contextmanager
    def window(self) -> Iterator[None]:
        with leadline.profile(self._file, quiet=True, trace="seconds=600,wait=0"):
            yield
        self.user_events = len(leadline.open(self._file).events["start_ns"])

    @contextlib.contextmanager
    def kernel(self) -> Iterator[None]:
        recorder = TracefsRecorder("syscalls")
        try:
            with self.window():
                recorder.switch.write_text("1", encoding="ascii")
                yield
                recorder.end()
            with tempfile.TemporaryDirectory() as name:
                recording = recorder.save(Path(name))
                pages = {int(one.stem.removeprefix("cpu")): one.read_bytes() for one in Path(name).glob("cpu*.raw")}
        finally:
            recorder.remove()
        parts, _ = tracefs.decode(pages, recording.details["formats"], recording.details["machine"])
        total = sum(len(part["time_ns"]) for part in parts)
        calls = sum(len(part["time_ns"]) for part in parts if int(part["kind"][0]) in (5, 6))
        self.kernel_events = {"sched": total - calls, "syscalls": calls}


def step_ms(step: Callable[[], None], steps: int) -> float:
    """CPU milliseconds of a step in the fastest stretch."""
    best = float("inf")
    for _ in range(STRETCHES):
        begin = time.thread_time()
        for _ in range(steps):
            step()
        best = min(best, time.thread_time() - begin)
    return best / steps * 1e3


def measure(name: str, rounds: int, steps: int, folder: Path) -> dict[str, object]:
    modes = Modes(folder)
    ways: dict[str, Callable[[], contextlib.AbstractContextManager[object]]] = {
        "unprofiled": contextlib.nullcontext,
        "unprofiled again": contextlib.nullcontext,
        "tree": modes.tree,
        "window": modes.window,
        "window and kernel": modes.kernel,
    }
    step = training(name)
    step_ms(step, steps)
    runs: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds):
        for way in random.Random(number).sample(sorted(ways), len(ways)):
            with ways[way]():
                step()
                runs[way].append(step_ms(step, steps))
        print(f"{name}, round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    whole = STRETCHES * steps + 1
    costs = event_costs()
    kernel_us = sum(costs[kind] * count / whole / 1e3 for kind, count in modes.kernel_events.items())
    return {
        "runs": runs,
        "user_events": modes.user_events / whole,
        "kernel_events": sum(modes.kernel_events.values()) / whole,
        "kernel_us": kernel_us,
    }


def rows_of(name: str, found: dict[str, object]) -> tuple[list[list[str]], bool]:
    """Rows of the table, and whether both goals are held."""
    runs: dict[str, list[float]] = found["runs"]  # type: ignore[assignment]
    plain = runs["unprofiled"]
    base = statistics.median(plain)
    added = {
        way: Spread.of(100 * (value / one - 1) for value, one in zip(values, plain, strict=True))
        for way, values in runs.items()
    }
    kernel_percent = float(found["kernel_us"]) / base / 10  # type: ignore[arg-type]
    told = {
        "tree": "",
        "window": f"{found['user_events']:.0f}",
        "window and kernel": f"{found['kernel_events']:.1f} of the kernel",
    }
    rows = [[name, "unprofiled again", f"{base:.2f}", "", added["unprofiled again"].text(1), "", ""]]
    held = True
    for way, events in told.items():
        total = added["window"].median + kernel_percent if way == "window and kernel" else added[way].median
        goal = GOALS.get(way)
        held = held and (goal is None or total <= goal)
        rows.append(
            [name, way, f"{base:.2f}", events, added[way].text(1), f"{total:.2f}", f"{goal:.0f}" if goal else ""]
        )
    return rows, held


def paper() -> str:
    rows = [
        [name, platform, *("" if value is None else f"{value}" for value in values)]
        for name, by_platform in PAPER.items()
        for platform, values in by_platform.items()
    ]
    return markdown_table(["model", "on", "dataflow, %", "all of the user's side, %", "with the kernel, %"], rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--steps", type=int, default=20)
    add_results_option(parser)
    arguments = parser.parse_args()
    facts = machine()
    torch.set_num_threads(1)
    rows, data, held = [], {}, True
    with tempfile.TemporaryDirectory() as folder:
        for name in PAPER:
            try:
                data[name] = measure(name, arguments.rounds, arguments.steps, Path(folder))
            except Refused as error:
                raise SystemExit(f"the kernel cannot be recorded here: {error}") from None
            made, good = rows_of(name, data[name])
            rows += made
            held = held and good
    head = ["model", "mode", "step, ms", "events a step", "added, % (range)", "by cost times count, %", "must, %"]
    report = (
        f"{arguments.rounds} rounds, medians and ranges of each round's ratio; events of the kernel cost what "
        f"kernel.md says of one.\n\n{markdown_table(head, rows)}\n"
        f"The paper's figures (of whole runs, on its machines):\n\n{paper()}"
    )
    write_results(arguments.results, "window", facts, {"measured": data}, report)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
