"""What a trace says, read the plain way: Python's json over the whole file and one rule after the other. The compiled
reader must say the same; it is tested against this.

Numbers that a file writes as text count, as in traces of 2021; whole numbers are cut off towards zero.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

LARGEST = 2**62
DETAILS = frozenset(
    (
        "Input Dims", "Input type", "Input Types", "Concrete Inputs", "Concrete Args", "Collective name",
        "Process Group Name", "Process Group Description", "Process Group Ranks", "Group size", "Seq", "In msg nelems",
        "Out msg nelems", "dtype", "blocks per SM", "grid", "block", "registers per thread", "shared memory", "est. achieved occupancy %",
    )
)  # fmt: skip
CATEGORIES = {
    "cpu_op": 0, "operator": 0, "user_annotation": 1, "runtime": 2, "kernel": 3, "gpu_memcpy": 4, "memcpy": 4,
    "gpu_memset": 5, "memset": 5, "python_function": 6, "cuda_sync": 8,
}  # fmt: skip
NOT_NEEDED = frozenset(
    (
        "", "trace", "overhead", "gpu_user_annotation", "cuda_event", "cpu_instant_event", "ac2g", "async_cpu_to_gpu",
        "async_gpu", "async", "fwdbwd", "external_correlation",
    )
)  # fmt: skip
OPERATION, REGION, CALL, KERNEL, COPY, SET, MODULE, PYTHON, SYNC = range(9)


class Lacking(Exception):
    """An event lacks what it needs."""


def text_of(value: str) -> str:
    """As UTF-16 without halves of surrogate pairs."""
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def real(value: Any) -> float:
    if isinstance(value, str) and not re.fullmatch(
        r"-?\d+(\.\d*)?([eE][+-]?\d+)?|-?\.\d+([eE][+-]?\d+)?", value, re.ASCII
    ):
        if value.lower() not in ("nan", "inf", "infinity", "-inf", "-infinity", "-nan"):
            raise Lacking
    elif isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Lacking
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def whole(value: Any) -> int:
    found = int(value) if isinstance(value, int) or re.fullmatch(r"-?\d+", str(value), re.ASCII) else real(value)
    if isinstance(found, float) and not (abs(found) < LARGEST):
        raise Lacking
    found = int(found)
    if not -LARGEST < found < LARGEST or isinstance(value, bool):
        raise Lacking
    return found


def whole_or(value: Any, absent: int) -> int:
    try:
        return whole(value)
    except Lacking:
        return absent


def bits(value: Any) -> int | None:
    """A whole number of 64 bits, with or without a sign, as one without."""
    text = str(value)
    if isinstance(value, bool | float) or not re.fullmatch(r"-?\d+", text, re.ASCII):
        return None
    return int(text) % 2**64 if -(2**63) <= int(text) < 2**64 else None


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def place(value: Any) -> int:
    """A number of a device, a stream or a thread, or the first one in a text; -1 for what vendors write for none."""
    if isinstance(value, str):
        digits = re.search(r"-?[0-9]+", value)
        return (int(digits.group()) if -(2**63) <= int(digits.group()) < 2**63 else -1) if digits else 0
    if not is_number(value):
        return 0
    if bits(value) in (2**32 - 1, 2**64 - 1):
        return -1
    known = bits(value)
    return whole_or(value, -1 if known is None else known >> 1)


class PlainReader:
    def __init__(self, low: float = -math.inf, high: float = math.inf, *, python: bool = False) -> None:
        self.python = python
        self.window = (low, high)
        self.events: list[tuple[Any, ...]] = []
        self.flows: list[tuple[Any, ...]] = []
        self.syncs: list[tuple[int, ...]] = []
        self.memory: list[tuple[Any, ...]] = []
        self.thread_names: dict[tuple[Any, int], str] = {}
        self.malformed = 0
        self.numbers: dict[str, int] = {}
        self.legacy = False

    def read(self, events: list[Any]) -> PlainReader:
        for event in events:
            try:
                self._take(event)
            except (Lacking, KeyError):
                self.malformed += 1
        return self

    def _take(self, event: Any) -> None:
        if not isinstance(event, dict):
            raise Lacking
        phase = event["ph"]
        if phase == "X":
            self._span(event)
        elif phase == "B":  # open until its end is known
            real(event["ts"])
            self._span({**event, "dur": math.inf})
        elif phase == "E":
            real(event["ts"])
        elif phase in ("s", "f") and isinstance(phase, str) and event.get("cat") == "fwdbwd":
            thread, at, number = self._thread(event), real(event["ts"]), event["id"]
            if not abs(at) < LARGEST:
                raise Lacking
            self.flows.append((number if isinstance(number, str) else whole(number), phase, thread, at))
        elif phase == "M" and event.get("name") == "thread_name":
            thread = self._thread(event)
            name = self._args(event).get("name")
            if name is not None or "name" in self._args(event):
                self.thread_names[thread] = text_of(name) if isinstance(name, str) else "?"
        elif phase == "i" and event.get("name") == "[memory]":
            args = self._args(event)
            at = real(event["ts"])
            if not abs(at) < LARGEST:
                raise Lacking
            self.memory.append((at, whole(args["Bytes"]), whole_or(args.get("Device Type"), 0)))

    @staticmethod
    def _args(event: dict[str, Any]) -> dict[str, Any]:
        args = event.get("args")
        return args if isinstance(args, dict) else {}

    @staticmethod
    def _thread(event: dict[str, Any]) -> tuple[Any, int]:
        pid, tid = event["pid"], event["tid"]
        for value in (pid, tid):
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise Lacking
        digits = isinstance(pid, str) and re.fullmatch("[0-9]+", pid)
        if isinstance(pid, str) and not digits:
            return text_of(pid), place(tid)
        known = bits(pid)
        return whole_or(pid, known >> 1) if known is not None else whole(pid), place(tid)

    def _correlation(self, value: Any) -> int:
        """A number of a launch; what is no such number stands for itself."""
        if not is_number(value) and not isinstance(value, str):
            return 0
        try:
            said = real(value)
        except Lacking:
            said = 0.0
            known = None
        else:
            known = whole_or(value, LARGEST)
        if bits(value) in (2**32 - 1, 2**64 - 1) or math.isnan(said) or value == "":
            return 0
        if known is not None and known < 2**61:
            return max(known, 0)
        return 2**61 + self.numbers.setdefault(json.dumps(value).strip('"'), len(self.numbers))

    @staticmethod
    def _of_event_list(event: dict[str, Any]) -> int:
        """What an event without a category is, which torch's EventList writes."""
        name = event.get("name")
        if "cat" in event or event.get("pid") != "CPU functions" or not isinstance(name, str):
            return KERNEL if "cat" not in event and event.get("pid") == "CUDA functions" else -1
        for start, found in (("Memcpy ", COPY), ("Memset ", SET), ("void ", KERNEL), ("nn.Module: ", MODULE)):
            if name.startswith(start):
                return found
        if "): " in name:
            return MODULE
        return CALL if name.startswith(("cuda", "hip", "cuLaunch", "cuMem")) else OPERATION

    @staticmethod
    def _unknown(name: Any, args: dict[str, Any]) -> int:
        """What an event of a category that is not known is, -1 where nothing tells."""
        if "correlation" in args and "stream" in args:
            return KERNEL
        if isinstance(name, str) and name.startswith("aten::"):
            return OPERATION
        if isinstance(name, str) and name.startswith(("ProfilerStep", "Optimizer.", "enumerate(DataLoader)")):
            return REGION
        return CALL if isinstance(name, str) and name.startswith(("cuda", "hip")) and "correlation" in args else -1

    def _span(self, event: dict[str, Any]) -> None:
        said = event.get("cat")
        lower = said.lower() if isinstance(said, str) else ""
        category = CALL if lower.endswith(("_runtime", "_driver")) else CATEGORIES.get(lower, -1)
        args = self._args(event)
        if "cat" not in event:
            category = self._of_event_list(event)
        if category < 0 and lower not in NOT_NEEDED:
            category = self._unknown(event.get("name"), args)
        if category < 0:
            return
        self.legacy |= said == "Operator" or "cat" not in event
        if category == SYNC:
            correlation = self._correlation(args["correlation"])
            waiting = place(args["stream"]) if "stream" in args else -1
            awaited = place(args["wait_on_stream"]) if "wait_on_stream" in args else waiting
            self.syncs.append(
                (correlation, waiting, awaited, self._correlation(args.get("wait_on_cuda_event_record_corr_id")))
            )
            return
        name = event["name"]
        if not isinstance(name, str):
            raise Lacking
        if category == MODULE:
            if not name.startswith("nn.Module: "):
                if not self.python:
                    return
                category = PYTHON
            name = name.removeprefix("nn.Module: ")
        ts, dur = real(event["ts"]), real(event.get("dur", 0))
        low, high = self.window
        if (math.isfinite(low) or math.isfinite(high)) and not (ts <= high and ts + dur >= low):
            return
        thread, device, row, correlation, sequence, forward, size = None, -1, -1, 0, -1, -1, 0
        if category in (KERNEL, COPY, SET):
            device = max(place(args["device"] if "device" in args else event.get("pid")), 0)
            device = device if "cat" in event else 0
            row = place(args["stream"] if "stream" in args else event.get("tid"))
            size = max(whole_or(args.get("bytes"), 0), 0)
            correlation = self._correlation(args.get("correlation"))
        else:
            thread = self._thread(event)
            if category == CALL:
                correlation = self._correlation(args.get("correlation"))
            elif category == OPERATION and "Sequence number" in args:
                sequence = whole_or(args["Sequence number"], -1)
                forward = whole_or(args.get("Fwd thread id"), -1) if sequence >= 0 else -1
        if category in (MODULE, PYTHON) and re.search("[\b\f\n\r\t]", name):
            # what Python's json escapes with one letter is taken for a path whose backslashes were not escaped
            name = json.dumps(name, ensure_ascii=self.python)[1:-1].replace("\\\\", "\\")
        kept = {"Input Dims" if key == "Input dims" else key: value for key, value in args.items()
                if key in DETAILS or key == "Input dims"}  # fmt: skip
        self.events.append(
            (ts, dur, category, text_of(name), thread, device, row, correlation, sequence, forward, size, kept)
        )
