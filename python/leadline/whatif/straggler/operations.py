"""Operation-level traces of large jobs (data x pipeline parallel), read from parquet into dense arrays.

One row of such a trace is one operation of one worker in one step, seconds in its time columns. Every step and every
data-parallel rank performs the same operations, so the whole trace is a dense block: an axis of operations (kind,
sequence number, pipeline stage) and two axes of data (step, data-parallel rank). All times here are nanoseconds,
relative to the first start of their step.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline._dataclass import dataclass, replace

FloatArray = NDArray[np.float64]

COLUMNS = ("dp_rank", "stage", "rank", "step", "optype", "start_ts", "duration", "seq_id", "mc", "gmc")

FORWARD, BACKWARD = "forward-compute", "backward-compute"
P2P = ("forward-send", "forward-recv", "backward-send", "backward-recv")
ALL_GATHER, REDUCE_SCATTER = "params-all-gather", "grads-reduce-scatter"
SEPARATE_ALL_REDUCE = "separate-grads-all-reduce"
LAYERNORM, EMBEDDING = "layernorm-grads-all-reduce", "embedding-grads-all-reduce"
CLIP, OPTIMIZER, GC = "optimizer-clip-main-grad", "optimizer", "gc"
DATA_PARALLEL = (ALL_GATHER, REDUCE_SCATTER, SEPARATE_ALL_REDUCE)
COMMUNICATION = (*P2P, *DATA_PARALLEL, LAYERNORM, EMBEDDING, CLIP)
KNOWN = (FORWARD, BACKWARD, *COMMUNICATION, OPTIMIZER, GC)


class StragglerInputError(ValueError):
    """The operation trace cannot be used; the message says what is wrong and what to do."""


@dataclass(frozen=True)
class Operation:
    """One operation of a pipeline stage; the same in every step and on every data-parallel rank."""

    kind: str
    sequence: int
    """Position among the operations of this kind on this stage within a step, from 0."""
    stage: int
    chunk: int
    """Model chunk (virtual stage) within the stage; -1 where it has none."""
    global_chunk: int
    """Model chunk within the whole model; -1 where it has none."""

    @property
    def name(self) -> str:
        return f"{self.kind}_{self.sequence}_{self.stage}"


@dataclass(frozen=True)
class OperationTrace:
    """A dense block of measured operations: `start_ns` and `duration_ns` have shape (operations, steps, dp ranks)."""

    operations: tuple[Operation, ...]
    steps: tuple[int, ...]
    dp_size: int
    pp_size: int
    worker: NDArray[np.int64]
    """Global rank, shape (stages, dp ranks)."""
    start_ns: FloatArray
    duration_ns: FloatArray

    @property
    def end_ns(self) -> FloatArray:
        return self.start_ns + self.duration_ns

    @property
    def step_time_ns(self) -> FloatArray:
        """Measured time of each step: last end minus first start over all workers. Shape (steps,)."""
        result: FloatArray = self.end_ns.max(axis=(0, 2)) - self.start_ns.min(axis=(0, 2))
        return result

    def only(self, steps: Sequence[int]) -> OperationTrace:
        """The trace of some of its steps."""
        kept = [self.steps.index(step) for step in steps]
        return replace(self, steps=tuple(steps), start_ns=self.start_ns[:, kept], duration_ns=self.duration_ns[:, kept])


def read(path: str | Path) -> OperationTrace:
    """Reads a parquet operation trace. Raises StragglerInputError in one sentence when it cannot be used."""
    try:
        from pyarrow import parquet  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise StragglerInputError(
            f"{path} is a parquet file and reading it needs pyarrow, which is not installed: "
            "run `pip install leadline[parquet]`."
        ) from None
    try:
        table = parquet.read_table(str(path))
    except (OSError, ValueError) as error:
        reason = str(error).split("\n")[0].rstrip(".")
        raise StragglerInputError(
            f"{path} cannot be read as parquet ({reason}); check that the copy is complete."
        ) from error
    missing = [name for name in COLUMNS if name not in table.column_names]
    if missing:
        raise StragglerInputError(
            f"{path} is not an operation trace: it lacks the columns {', '.join(missing)}; "
            "each row must be one operation of one worker in one step."
        )
    columns = {name: np.asarray(table[name].to_pylist()) for name in COLUMNS}
    return from_columns(columns, str(path))


def from_columns(columns: dict[str, NDArray[Any]], source: str) -> OperationTrace:
    """Builds the dense block from `COLUMNS`, times in seconds. Raises StragglerInputError when it is not dense."""
    kinds = columns["optype"].astype(str)
    if len(kinds) == 0:
        raise StragglerInputError(f"{source} holds no operation; record at least one whole step.")
    unknown = sorted(set(kinds) - set(KNOWN))
    if unknown:
        raise StragglerInputError(
            f"{source} holds operations of kinds that the pipeline model does not know ({', '.join(unknown[:4])}); "
            f"it knows {', '.join(KNOWN)}."
        )
    start = columns["start_ts"].astype(np.float64)
    duration = columns["duration"].astype(np.float64)
    if not (np.isfinite(start).all() and np.isfinite(duration).all()) or (duration < 0).any():
        raise StragglerInputError(
            f"{source} holds a negative or missing time; the recording is damaged, so record it again."
        )
    step_values, step_of = np.unique(columns["step"].astype(np.int64), return_inverse=True)
    dp_of = columns["dp_rank"].astype(np.int64)
    stage_of = columns["stage"].astype(np.int64)
    dp_size, pp_size = int(dp_of.max()) + 1, int(stage_of.max()) + 1

    sequence = columns["seq_id"].astype(np.int64)
    keys = list(zip(kinds.tolist(), sequence.tolist(), stage_of.tolist(), strict=True))
    index = {key: position for position, key in enumerate(sorted(set(keys)))}
    row_op = np.fromiter((index[key] for key in keys), dtype=np.int64, count=len(keys))
    shape = (len(index), len(step_values), dp_size)
    cell = np.ravel_multi_index((row_op, step_of, dp_of), shape)
    filled = np.bincount(cell, minlength=int(np.prod(shape)))
    if (filled != 1).any():
        raise StragglerInputError(
            f"{source}: {int((filled == 0).sum())} operations are missing and {int((filled > 1).sum())} are recorded "
            "twice; "
            "every step and every data-parallel rank must hold the same operations, so drop the incomplete steps."
        )
    first_row = {op: row for row, op in reversed(list(enumerate(row_op.tolist())))}
    operations = tuple(
        Operation(kind, seq, stage, int(columns["mc"][first_row[op]]), int(columns["gmc"][first_row[op]]))
        for (kind, seq, stage), op in index.items()
    )
    starts = np.empty(shape)
    durations = np.empty(shape)
    starts.ravel()[cell] = start * 1e9
    durations.ravel()[cell] = duration * 1e9
    starts -= starts.min(axis=(0, 2), keepdims=True)
    worker = np.full((pp_size, dp_size), -1, dtype=np.int64)
    worker[stage_of, dp_of] = columns["rank"].astype(np.int64)
    return OperationTrace(operations, tuple(step_values.tolist()), dp_size, pp_size, worker, starts, durations)
