"""What measuring would cost at most on this machine: events, samples and segments are tried for a moment, here."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from leadline._dataclass import dataclass
from leadline._own_cost import with_beside_ns
from leadline.capture.config import Options
from leadline.capture.native import Native, load_native

FIXED_BYTES = 6_000_000
"""Python modules, native library and session, before the first event (bench/start_memory.py)."""
PATH_BYTES = 1_024
"""Of a call path with all that is usually measured of it; 370 to 650 in bench/results/memory.md."""
EVENT_BYTES = 128
"""Of an event of a trace window that is not a plain one; those have 32."""
SAMPLED_THREAD_BYTES = 640 << 10
"""Ring of samples and signal stack (native/providers/cpu)."""
USUAL_PATHS = 2_000
"""About as many has a model with a few dozen layers; GPT of bench/ has 1,730."""
LOOK_NS = 60_000
"""Looking at one waiting thread once: 20 to 60 µs (bench/results/cpu_samples.md)."""
_REGIONS = 20_000
_SAMPLING_HZ = 997.0
_SAMPLED_S = 0.25


@dataclass(frozen=True)
class Forecast:
    """Most bytes in a process, ns and shares of wall time."""

    fixed_bytes: int
    usual_paths_bytes: int
    most_paths_bytes: int
    """Of one thread."""
    window_bytes: int
    sampled_thread_bytes: int
    event_ns: float
    """With what a call costs outside of it."""
    sample_ns: float
    samples_share: float
    """Of a thread's CPU time."""
    looks_share: float
    """Of wall time, for each waiting thread."""
    segment_ns: float
    """Writing one with `USUAL_PATHS` call paths."""
    segments_share: float


def forecast(options: Options) -> Forecast:
    """For a run with these options. Takes about half a second; raises ProfileError where nothing can be measured."""
    native = load_native()
    with tempfile.TemporaryDirectory() as folder:
        native.start(
            segment_path=str(Path(folder) / "x.segment"),
            max_nodes=options.max_nodes,
            flush_interval_s=0,
            trace_max_events=1,
            record_shapes=False,
            memory=False,
            track_modules=False,
        )
        try:
            _regions(native, USUAL_PATHS)  # to be made costs a path more, once
            before = native.stats()["cost"]
            _regions(native, _REGIONS)
            after = native.stats()["cost"]
            began_ns = time.thread_time_ns()
            native.flush()
            segment_ns = time.thread_time_ns() - began_ns
            sample_ns = _sample_ns(native, options) if options.sample_hz else 0.0
        finally:
            native.stop()
    calls_ns, events = after["callbacks_ns"] - before["callbacks_ns"], max(after["events"] - before["events"], 1)
    return Forecast(
        fixed_bytes=FIXED_BYTES,
        usual_paths_bytes=USUAL_PATHS * PATH_BYTES,
        most_paths_bytes=options.max_nodes * PATH_BYTES,
        window_bytes=options.trace_max_events * EVENT_BYTES if options.trace is not None else 0,
        sampled_thread_bytes=SAMPLED_THREAD_BYTES if options.sample_hz else 0,
        event_ns=with_beside_ns(calls_ns, events, options.shapes) / events,
        sample_ns=sample_ns,
        samples_share=sample_ns * options.sample_hz / 1e9,
        looks_share=LOOK_NS * options.wait / 1e9,
        segment_ns=segment_ns,
        segments_share=segment_ns / (options.flush_interval_s * 1e9),
    )


def _regions(native: Native, count: int) -> None:
    for number in range(count):
        native.region_end(native.region_begin(f"path {number % USUAL_PATHS}"))


def _sample_ns(native: Native, options: Options) -> float:
    """CPU time of taking and booking one sample, with what the options add to it."""
    wanted = {"hz": _SAMPLING_HZ, "native": options.native, "counters": [], "wait_hz": 0.0}
    if not native.provider_start("cpu", wanted).get("ok"):
        return 0.0
    end_s = time.thread_time() + _SAMPLED_S
    while time.thread_time() < end_s:
        pass
    told = native.provider_stop("cpu")
    return float(told["handlers_ns"] + told["helper_ns"]) / max(int(told["samples"]), 1)
