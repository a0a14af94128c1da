"""Real memory accesses of kernels on NVIDIA GPUs, summed on the device by launch and object (Compute Sanitizer).

Nothing waits for the device: a launch takes one of 64 trackers of its context, and what it did is read from pinned
memory once its last thread has ended. The library has one subscriber in a process and cannot share it with CUPTI, so a
run with this backend has no GPU times; `leadline tool join` brings them from another run.
"""

from __future__ import annotations

import functools
import math
import os
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.tools import device_text
from leadline.tools.backends import Wants
from leadline.tools.backends.sanitizer_files import architectures, library_candidates, named_text, why_not
from leadline.tools.batch import Batch, batch_of
from leadline.tools.errors import ToolError
from leadline.tools.tool import Context

EVENTS = frozenset({"launch", "touched", "block", "value", "count", "shared_access", "instruction", "barrier"})
TRAITS = ("real accesses", "library kernels", "graphs", "summed on the device", "no GPU times (excludes CUPTI)")
DOC = "real accesses of kernels on an NVIDIA GPU, by the Compute Sanitizer"
NOTHING = "no kernel was launched on an NVIDIA GPU"

WANT_PAGES, WANT_VALUES, WANT_CONFLICTS, WANT_INSTRUCTIONS, WANT_POINTS, WANT_BARRIERS = 1, 2, 4, 8, 16, 64
"""Want of native/backends/device/tracker.h."""
_FLOAT32 = 1
"""Element of the same header."""
_SHARED, _BARRIER = 1, 3
"""Point of the same header."""
_LEAST_SHIFT, _MOST_SHIFT = 7, 31
_MOST_SIZES = 4
WITHOUT_COPIES_VARIABLE = "LEADLINE_SANITIZER_WITHOUT_COPIES"
"""Environment: 1 leaves out what copies from global to shared memory read, as the paper's working sets do."""

ON_THE_HOST_VARIABLE = "LEADLINE_SANITIZER_ON_THE_HOST"
"""Environment: a number of accesses. At most so many of each launch (24 bytes each, pinned) come to the host as
they are and are added up there, one launch after the other: what analysis on the device is compared with."""

_I8, _U4, _I4 = "<i8", "<u4", "<i4"
BIRTH = np.dtype(
    [(name, _I8) for name in ("address", "bytes", "place", "launch")]
    + [("object", _U4), ("device", _I4), ("tensor", _U4), ("unused", _U4)]
)
LAUNCH = np.dtype(
    [(name, _I8) for name in ("launch", "time", "place", "blocks")]
    + [("threads", _U4), ("name", _U4), ("thread", _U4), ("device", _I4)]
)
TOUCHED = np.dtype(
    [(name, _I8) for name in ("launch", "time", "place", "first", "end", "reads", "writes", "atomics")]
    + [(name, _I8) for name in ("read_bytes", "written_bytes", "atomic_bytes", "nan", "inf", "counted")]
    + [("pages", _I8, (_MOST_SIZES,)), ("object", _U4), ("unused", _U4)]
)
INSTRUCTION = np.dtype(
    [(name, _I8) for name in ("launch", "place", "pc", "warps", "threads", "split", "conflicts", "bytes")]
    + [(name, _I8) for name in ("meetings", "waited")]
    + [("name", _U4), ("point", _U4)]
)
DONE = np.dtype([("launch", _I8), ("threads", _I8)])
"""Rows of native/backends/sanitizer/rows.h and object_table.h."""

LOSSES = (
    "launches that found no tracker free",
    "launches whose code could not be patched",
    "launches that began while another thread patched code",
    "launches for whose sums there was no memory",
    "launches whose set-up the Compute Sanitizer refused",
    "launches that ended without reporting their sums",
    "launches that were under way when measuring stopped",
    "launches under way in a context that was destroyed",
    "objects that found no room in the result of a launch",
    "instructions that found no room in the result of a launch",
    "rows that were not read in time",
    "objects that found no room in the table",
    "accesses outside of every known object",
    "copies by tensor maps (TMA), whose bytes are not followed",
    "arrivals of warps at barriers whose waits could not be followed",
    "accesses that found no room in the stream of a launch, so that its sums are too small",
)
"""By number: Lost of native/backends/sanitizer/losses.h."""
_WITHOUT_TMA = "releases of the Compute Sanitizer before 13.3, to which copies by tensor maps (TMA) are invisible"
_NOT_PATCHED = 1
_LOST_OBJECTS = 11
_AT_ONCE = 1 << 16
"""Rows that the native half hands over in one call at most."""


class SanitizerBackend:
    """Drains the native half."""

    name = "sanitizer"
    events = EVENTS
    traits = TRAITS

    def __init__(self, native: Any, context: Context, wants: Wants) -> None:
        self._context = context
        self._wants = wants
        sizes, shift = page_sizes(wants.pages)
        self._sizes = sizes
        want = WANT_POINTS  # else copies by tensor maps would not be counted, and sets too small without a word
        want |= WANT_PAGES if "touched" in wants.events else 0
        want |= WANT_VALUES if wants.events & {"value", "count"} else 0
        want |= WANT_CONFLICTS if "shared_access" in wants.events else 0
        want |= WANT_BARRIERS if "barrier" in wants.events else 0
        want |= WANT_INSTRUCTIONS if wants.events & {"shared_access", "instruction", "barrier"} else 0
        ranges = wants.ranges
        self._native = native.SanitizerBackend(
            candidates=list(library_candidates()),
            image=image(wants),
            page_sizes=list(sizes),
            page_shift=shift,
            want=want,
            element=_FLOAT32,
            without_copies=os.environ.get(WITHOUT_COPIES_VARIABLE) == "1",
            raw_room=_accesses_on_the_host(),
            first=ranges.first,
            end=-1 if ranges.end is None else ranges.end,
            every=ranges.every,
            kernel=ranges.kernel,
            layer=ranges.layer,
            phase=ranges.phase,
        )
        self._objects: dict[int, int] = {}
        self._bad: set[int] = set()
        self._block_threads: dict[int, int] = {}  # of launches that have not told their sums

    def start(self) -> None:
        torch = sys.modules.get("torch")
        cuda = getattr(torch, "cuda", None)
        if cuda is not None and cuda.is_initialized():
            raise ToolError(
                "The backend sanitizer does not work here: the program has started CUDA already, so its code and "
                "memory were not seen; start measuring before."
            )
        why = self._native.start()
        if why:
            raise ToolError(f"The backend sanitizer does not work here: {why}.")

    def stop(self) -> None:
        self._native.stop()

    def wait(self, seconds: float) -> None:
        self._native.wait(int(seconds * 1e9))

    @property
    def skipped(self) -> int:
        """Launches that the ranges left out."""
        return int(self._native.skipped())

    def lost(self) -> dict[str, int]:
        found = {}
        for number, words in enumerate(LOSSES):
            count = int(self._native.lost_objects() if number == _LOST_OBJECTS else self._native.lost(number))
            if count and number == _NOT_PATCHED:
                words = f"{words} ({self._native.problem()})"
            if count:
                found[words] = count
        if self._native.without_tma():
            found[_WITHOUT_TMA] = 1
        return found

    def drain(self) -> Iterable[Batch]:
        more = True
        while more:
            more = False
            for batch in self._some():
                more = more or len(batch) >= _AT_ONCE
                yield batch

    def _some(self) -> Iterable[Batch]:
        # What a launch touched is taken before objects and launches are, so that both are known for every row.
        done = np.frombuffer(self._native.done(), DONE)
        touched = np.frombuffer(self._native.touched(), TOUCHED)
        instructions = np.frombuffer(self._native.instructions(), INSTRUCTION)
        self._learn(np.frombuffer(self._native.objects(), BIRTH))
        launches = np.frombuffer(self._native.launches(), LAUNCH)
        if len(launches):
            yield self._launches(launches)
        if len(touched):
            yield from self._touched(touched)
        if len(instructions):
            yield from self._instructions(instructions)
        if len(done) and "block" in self._wants.events:
            threads = np.array([self._block_threads.pop(launch, 1) for launch in done["launch"].tolist()], np.int64)
            columns = {"launch": done["launch"], "threads": threads, "count": done["threads"] // np.maximum(threads, 1)}
            yield batch_of("block", columns)

    # ---------------------------------------------------------------- rows as events

    def _learn(self, births: NDArray[Any]) -> None:
        for row in births:
            shape = f"{int(row['bytes']):,} bytes at 0x{int(row['address']):x}"
            category = "tensor" if row["tensor"] else "allocation"
            made = self._context.objects.add(
                int(row["bytes"]), int(row["device"]), int(row["place"]), category, shape, int(row["launch"])
            )
            self._objects[int(row["object"])] = made

    def _numbers(self, objects: NDArray[Any]) -> NDArray[np.int64]:
        return np.array([self._objects.get(int(one), -1) for one in objects], np.int64)

    def _names(self, names: NDArray[Any]) -> NDArray[np.int64]:
        number = functools.cache(lambda one: self._context.names.number(self._native.name(one)))
        return np.array([number(int(one)) for one in names], np.int64)

    def _launches(self, rows: NDArray[Any]) -> Batch:
        columns = {name: rows[name] for name in ("launch", "time", "thread", "device", "place")}
        columns["kernel"] = self._names(rows["name"])
        columns |= {"blocks": rows["blocks"], "threads": rows["threads"]}
        nothing = np.zeros(len(rows), np.int64)
        if "block" in self._wants.events:
            self._block_threads.update(zip(rows["launch"].tolist(), rows["threads"].tolist(), strict=True))
        batch = batch_of("launch", {**columns, "duration": nothing, "flops": nothing, "inputs": nothing})
        known = batch.columns()
        self._context.launches.add(*(known[name] for name in ("launch", "kernel", "place", "time")))
        return batch

    def _touched(self, rows: NDArray[Any]) -> Iterable[Batch]:
        objects = self._numbers(rows["object"])
        columns: dict[str, Any] = {name: rows[name] for name in ("launch", "first", "end", "time", "place")}
        columns["object"] = objects
        columns["reads"] = rows["reads"] + rows["atomics"]
        columns["writes"] = rows["writes"] + rows["atomics"]
        # Bytes are known to the smallest page that is counted; no more than lie between the first and the last.
        pages = rows["pages"]
        columns["bytes"] = np.minimum(pages[:, 0] * self._sizes[0], rows["end"] - rows["first"])
        for index, size in enumerate(self._sizes):
            columns[f"pages@{size}"] = pages[:, index]
        if "touched" in self._wants.events:
            yield batch_of("touched", columns)
        if "value" in self._wants.events:
            yield from self._values(rows, objects)
        counted = rows["counted"] > 0
        if "count" in self._wants.events and counted.any():
            told = {name: rows[name][counted] for name in ("launch", "time", "place")}
            yield batch_of("count", {**told, "object": objects[counted], "value": rows["counted"][counted]})

    def _values(self, rows: NDArray[Any], objects: NDArray[np.int64]) -> Iterable[Batch]:
        bad = (rows["nan"] > 0) | (rows["inf"] > 0)
        if not bad.any():
            return
        clean = []
        for row in np.flatnonzero(bad):
            read = objects[(rows["launch"] == rows["launch"][row]) & (rows["reads"] > 0)]
            clean.append(int(not self._bad.intersection(read.tolist())))
            self._bad.add(int(objects[row]))
        chosen = rows[bad]
        columns: dict[str, Any] = {name: chosen[name] for name in ("launch", "nan", "inf", "time", "place")}
        yield batch_of("value", {**columns, "object": objects[bad], "elements": chosen["writes"], "clean": clean})

    def _instructions(self, rows: NDArray[Any]) -> Iterable[Batch]:
        names = [f"{self._native.name(int(row['name']))}+0x{int(row['pc']):x}" for row in rows]
        columns: dict[str, Any] = {name: rows[name] for name in ("launch", "pc")}
        columns["instruction"] = np.array([self._context.names.number(name) for name in names], np.int64)
        columns["count"] = rows["warps"]
        if "instruction" in self._wants.events:
            more = {"active": rows["threads"], "split": rows["split"], "place": rows["place"]}
            yield batch_of("instruction", {**columns, **more})
        shared = rows["point"] == _SHARED
        if "shared_access" in self._wants.events and shared.any():
            told = {name: values[shared] for name, values in columns.items()}
            yield batch_of("shared_access", {**told, "conflicts": rows["conflicts"][shared]})
        met = rows["meetings"] > 0
        if "barrier" in self._wants.events and met.any():
            told = {name: values[met] for name, values in columns.items()}
            told["count"] = rows["meetings"][met]
            yield batch_of("barrier", {**told, "waited": rows["waited"][met]})


def _accesses_on_the_host() -> int:
    asked = os.environ.get(ON_THE_HOST_VARIABLE, "0")
    if not asked.isdecimal():
        raise ToolError(f"{ON_THE_HOST_VARIABLE} is a number of accesses, not {asked!r}.")
    return int(asked)


def image(wants: Wants) -> bytes:
    """The text for the device, compiled here, with a tool's among it; raises ToolError."""
    named = named_text()
    if named is not None:
        try:
            return named.read_bytes() + b"\0"
        except OSError as error:
            raise ToolError(f"The text for the GPU cannot be read: {error}.") from None
    if len(wants.gpu) > 1:
        raise ToolError(f"The backend sanitizer takes one `gpu` text in a run, not those of {', '.join(wants.gpu)}.")
    tool, text = next(iter(wants.gpu.items()), ("", "")) if "count" in wants.events else ("", "")
    here = architectures()
    by_nvcc = any(one.nvcc for one in device_text.compilers())
    if not by_nvcc and len(here) != 1:
        found = f"GPUs of {len(here)} kinds" if here else "no GPU that nvidia-smi knows"
        raise ToolError(
            f"The backend sanitizer does not work here: there are {found}, and without nvcc the text for the "
            "GPU is compiled for one kind."
        )
    return device_text.patches(here or device_text.ARCHITECTURES, text, tool)


def page_sizes(wanted: Iterable[int]) -> tuple[tuple[int, ...], int]:
    """The sizes, the smallest first, and the shift of the page that all of them are multiples of; raises ToolError."""
    sizes = tuple(sorted(set(wanted))) or (4096,)
    shared = math.gcd(*sizes)
    shift = min((shared & -shared).bit_length() - 1, _MOST_SHIFT)
    if shift < _LEAST_SHIFT or len(sizes) > _MOST_SIZES:
        raise ToolError(
            f"The backend sanitizer counts pages of at most {_MOST_SIZES} sizes, each a multiple of "
            f"{1 << _LEAST_SHIFT} bytes; asked for were {', '.join(map(str, sizes))}."
        )
    return sizes, shift


def probe() -> str:
    """Why it would not work here, or empty."""
    return why_not()


def create(native: Any, context: Context, wants: Wants) -> SanitizerBackend:
    """See `leadline.tools.backends`; raises ToolError for pages that it cannot count."""
    return SanitizerBackend(native, context, wants)
