"""torchtitan, and loops like its: `self.step` counts from 1, the profiler's `step()` takes no number, and the context
manager is given the step that a checkpoint was made at."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from leadline.capture.training.profiler import TrainingProfiler, build_profiler


def make() -> Callable[..., Any]:
    """`maybe_enable_profiling`, with the call of torchtitan's own."""
    return maybe_enable_profiling


@contextmanager
def maybe_enable_profiling(
    config: Any,
    *,
    global_step: int = 0,
    base_folder: str = "",
    leaf_folder: str = "",
    rank: int | None = None,
    **keywords: Any,
) -> Iterator[TrainingProfiler | None]:
    """In place of torchtitan's context manager of this name; gives None when its `enable_profiling` is false.

    `config`: its profiling section, or the whole configuration with `profiling` and `job.dump_folder`. The steps are
    those that it would record, under its own numbers: `profiler_active` of every `profile_freq`, after the warm-up.
    `keywords` are fields of TrainingConfig and win.
    """
    if hasattr(config, "profiling"):
        base_folder = base_folder or getattr(getattr(config, "job", None), "dump_folder", "")
        config = config.profiling
    every = int(getattr(config, "profile_freq", 10))
    active, warmup = int(getattr(config, "profiler_active", 1)), int(getattr(config, "profiler_warmup", 3))
    told = {
        "enable": bool(getattr(config, "enable_profiling", False)),
        "trace_dir": os.path.join(base_folder, getattr(config, "save_traces_folder", "profiles"), leaf_folder),  # noqa: PTH118
        "wait": max(every - active - warmup, 0),
        "warmup": warmup,
        "active": active,
        "skip_first": 1,  # there is no step 0
    }
    if {"start_step", "end_step"} & set(keywords):
        told = {name: told[name] for name in ("enable", "trace_dir")}
    profiler = build_profiler({**told, **keywords}, rank=rank)
    if profiler is None:
        yield None
        return
    profiler.start(global_step + 1)
    try:
        yield profiler
    except BaseException as error:
        profiler.note_error(error)
        raise
    finally:
        profiler.stop()
