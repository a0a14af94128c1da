"""A profile that can be shown to others: folders, names of one's own, and arguments taken out; times and shape stay.

What is kept is listed here; everything that is not is replaced or left out, so that a new kind of text cannot slip
through. Equal texts get equal replacements, so the tree keeps its form, and the string table holds nothing unused.

    paths       folders of files; of an installed public package the part from its folder on stays
    names       functions, files, modules, classes, regions, operators and kernels of one's own; threads, machines, jobs
    arguments   command lines, shapes and other details of frames, sentences of losses
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from leadline._dataclass import dataclass, field
from leadline.profiles import Profile, Tables
from leadline.profiles.tables import Array, StringBuilder, empty_columns
from leadline.profiles.tree import json_object
from leadline.report.public_kernels import is_public_kernel
from leadline.report.public_names import (
    is_public_function,
    is_public_library,
    is_public_module,
    is_public_name,
    is_public_operator,
    is_public_part,
    public_package,
)
from leadline.schema import TABLES, FrameKind
from leadline.sources import SUFFIXES
from leadline.trace.links import links_of

PARTS = ("paths", "names", "arguments")
_DETAILS = (
    *("role", "collective", "pid", "start_ns", "tid", "stall", "type", "compute_capability", "multiprocessors"),
    *("direction", "from", "to", "link", "vendor", "architecture", "compute_units", "wavefront", "partition"),
)
"""Keys of a frame's or device's detail that say nothing of the program."""
_LINKS = ("xGMI", "PCIe", "other")
_CLASSES = re.compile(
    r"Linear|Conv[123]d|BatchNorm[12]d|(Layer|RMS|Group)Norm|Embedding(Bag)?|Dropout|ReLU|GELU|SiLU|Sigmoid|Tanh|Softmax|"
    r"Sequential|Module(List|Dict)|MultiheadAttention|Transformer(En|De)coder(Layer)?|(Max|Avg|AdaptiveAvg)Pool2d|LSTM|GRU|"
    r"RNN|(CrossEntropy|MSE|BCEWithLogits)Loss|Flatten|Identity|Upsample|DistributedDataParallel|FullyShardedDataParallel"
)
_THREADS = re.compile(r"(MainThread|main|pt_autograd_\d+|ThreadPoolExecutor-\d+_\d+|Thread-\d+)")
_IMPORTED = "imported."
_NUMBERS = re.compile(r"[\d.:-]+")
_VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc|\.?dev|\.?post)\d+)?(\+(cpu|xpu|cu\d+|rocm[\d.]+|git[0-9a-f]+))?")
_PHASES = re.compile(
    r"step|turn|forward|backward|optimizer|closure|zero_grad|data loading|compile|saving|garbage collection"
    r"|start-up|no work|scheduling|input preparation|prefill|decode|mixed|sampling|tokenising|detokenising"
    r"|waiting for the (engine|workers)|on another thread|(captured|instantiated) at|captured before profiling"
)
_MACHINES = ("x86_64", "aarch64", "arm64", "ppc64le", "riscv64", "AMD64")
_IMPLEMENTATIONS = ("cpython", "CPython", "pypy", "PyPy")
_BIN = re.compile(r"p?\d+")
_ENGINE_KEYS = (
    "at_ms", "batch", "between_steps", "bins", "cache", "cache_used", "cached_tokens", "called", "count", "decode",
    "decode_tokens", "e2e", "earlier", "ended", "engine", "first_step_ms", "gap", "id", "logprobs_requests", "max",
    "min", "mixed", "not_followed", "odd_arrivals", "oldest_open_ns", "open", "other_prefill", "output_tokens",
    "points", "preempted", "preemptions", "prefill", "prefill_tokens", "prompt_logprobs_requests", "prompt_tokens",
    "queue", "reason", "recent", "requests", "running", "scale", "sequences", "serving_ns", "share", "slowest",
    "steps", "sum", "tokens", "tokens_per_s", "tpot", "trace", "ttft", "version", "waiting",
)  # fmt: skip
_ENGINE_WORDS = ("vllm", "transformers", "stop", "length", "abort", "error", "repetition")
_ROLES = ("provider", "source", "tool")
_RECORD = (
    "pid", "parent_pid", "rank", "local_rank", "started_at_ns", "ended_at_ns", "wall_ns", "complete", "cost", "clock",
    "forked_from", "first_step_begun",
)  # fmt: skip


@dataclass
class _Names:
    """Stable replacements: the n-th different text of a kind is `kind n`."""

    given: dict[tuple[str, str], str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def of(self, kind: str, text: str) -> str:
        if not text:
            return ""
        if (kind, text) not in self.given:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self.given[kind, text] = f"{kind}{self.counts[kind]}"
        return self.given[kind, text]


def redacted(profile: Profile, parts: frozenset[str]) -> Profile:
    """The profile without what `parts` (of PARTS) names; meta.json says which were taken out."""
    one = _Redaction(profile, parts)
    return Profile(one.tables(), one.meta())


class _Redaction:
    def __init__(self, profile: Profile, parts: frozenset[str]) -> None:
        # names and paths inside machine code are no text of ours to change
        gone = {name: empty_columns(name) for name in ("code_objects", "code_bytes", "code_lines")}
        self._profile = Profile(Tables({**profile.tables.columns, **gone}), profile.meta)
        self._names = _Names()
        self._paths, self._own, self._arguments = (part in parts for part in PARTS)
        self._parts = sorted(parts)

    def tables(self) -> Tables:
        """Every text goes through one of the functions below."""
        old = self._profile.tables
        strings = StringBuilder()
        columns: dict[str, dict[str, Array]] = {name: dict(old[name]) for name in TABLES if name != "strings"}
        columns["frames"].update(self._frames(strings))
        for table, column, change in (
            ("processes", "name", self._command),
            ("threads", "name", self._thread),
            ("devices", "name", self._device),
            ("devices", "uuid", self._machine),
            ("devices", "detail", self._detail),
            ("losses", "detail", self._sentence),
            ("kernel_events", "name", self._thread),
            ("ranks", "host", self._machine),
            ("ranks", "role", self._quantity),
            ("ranks", "identity", self._machine),
            ("ranks", "files", self._machine),
            ("ranks", "note", self._sentence),
            ("rank_values", "name", self._quantity),
        ):
            columns[table][column] = self._column(table, column, change, strings)
        left = [
            (name, column.name)
            for name, table in TABLES.items()
            for column in table.columns
            if column.ref == "strings" and (name, column.name) not in _CHANGED
        ]
        for name, column in left:  # a column that this release does not know how to show
            columns[name][column] = self._column(name, column, lambda text: self._names.of("text", text), strings)
        return Tables({**columns, "strings": strings.columns()})

    def _column(self, table: str, column: str, change: Callable[[str], str], strings: StringBuilder) -> Array:
        values = self._profile.tables[table][column]
        text = self._profile.tables.strings
        new = [strings.add(change(text[row])) for row in values.tolist()]
        changed: Array = values.copy()
        changed[:] = new
        return changed

    def _frames(self, strings: StringBuilder) -> dict[str, Array]:
        frames, text = self._profile.tables["frames"], self._profile.tables.strings
        made: dict[str, list[int]] = {"name": [], "file": [], "module": [], "detail": []}
        names = ("kind", "name", "file", "module", "detail")
        for kind, name, file, module, detail in zip(*(frames[one].tolist() for one in names), strict=True):
            made["name"].append(strings.add(self._name(kind, text[name], text[file])))
            made["file"].append(strings.add(self._file(text[file])))
            made["module"].append(strings.add(self._class(text[module])))
            made["detail"].append(strings.add(self._detail(text[detail])))
        return {name: _like(frames[name], values) for name, values in made.items()}

    def _name(self, kind: int, name: str, file: str) -> str:
        if kind == FrameKind.PROCESS:
            return self._command(name)
        if kind == FrameKind.THREAD:
            return self._thread(name)
        if not self._own or kind == FrameKind.ROOT:
            return name
        if kind == FrameKind.PHASE:
            return name if _PHASES.fullmatch(name) else self._names.of("phase", name)
        if kind in (FrameKind.COPY, FrameKind.API):
            return name if is_public_name(name) else self._names.of("call", name)
        if kind == FrameKind.PYTHON:
            public = name == "<module>" or (is_public_module(file) and is_public_function(name))
            return name if public else self._names.of("function", name)
        if kind == FrameKind.NATIVE:
            return name if is_public_library(file) and is_public_name(name) else self._names.of("function", name)
        if kind == FrameKind.MODULE:
            return ".".join(word if word.isdigit() else self._names.of("module", word) for word in name.split("."))
        if kind == FrameKind.OPERATOR:
            return name if is_public_operator(name) else self._names.of("operator", name)
        if kind in (FrameKind.KERNEL, FrameKind.COLLECTIVE):
            return name if is_public_kernel(name) else self._names.of("kernel", name)
        return name if is_public_operator(name) else self._names.of("region", name)

    def _file(self, file: str) -> str:
        if not file:
            return file
        if file in ("<string>", "<stdin>", "<built-in>"):
            return file
        if file.startswith("<"):
            return file if not self._own or is_public_module(file) else self._names.of("file", file)
        if installed := public_package(file):
            return ("" if self._paths else file.removesuffix(installed)) + self._installed(installed)
        folder, slash, base = file.replace("\\", "/").rpartition("/")
        if self._own and not is_public_library(file):
            base = self._base(base)
        if self._paths and slash:
            folder = self._names.of("folder", folder)
        return f"{folder}{slash}{base}"

    def _installed(self, file: str) -> str:
        """Of a file in a public package what is public."""
        if not self._own or is_public_module(f"/site-packages/{file}"):
            return file
        *folders, base = file.split("/")
        shown = [folder if is_public_part(folder) else self._names.of("folder", folder) for folder in folders]
        return "/".join([*shown, base if is_public_part(base) else self._base(base)])

    def _base(self, base: str) -> str:
        ending = Path(base).suffix
        return self._names.of("file", base) + (ending if ending in SUFFIXES or ending == ".so" else "")

    def _class(self, module: str) -> str:
        return module if not self._own or _CLASSES.fullmatch(module) else self._names.of("Class", module)

    def _detail(self, detail: str) -> str:
        if not (detail and (self._own or self._arguments or self._paths)):
            return detail
        told = {name: value for name, value in json_object(detail).items() if name in _DETAILS and _says_nothing(value)}
        kept = {name: value for name, value in told.items() if not isinstance(value, dict | list)}
        if isinstance(thread := json_object(detail).get("thread"), str):
            kept["thread"] = self._thread(thread)  # by which the thread is found that did the work
        if links := links_of(json_object(detail)):
            shown = [{"device": one.device, "type": one.kind, "mb_per_s": int(one.bytes_s / 1e6)} for one in links]
            return json.dumps({**kept, "links": [one for one in shown if one["type"] in _LINKS]}, sort_keys=True)
        return json.dumps(kept, sort_keys=True) if kept else ""

    def _command(self, command: str) -> str:
        if self._own:
            return self._names.of("program", command)
        words = command.split(" ")
        if self._arguments:  # the interpreter and the program
            ends = [place for place, word in enumerate(words) if word.endswith(".py") or word == "-m"]
            words = words[: ends[0] + 1 + (words[ends[0]] == "-m")] if ends else words[:1]
        return " ".join(word.rpartition("/")[2] if self._paths else word for word in words)

    def _thread(self, name: str) -> str:
        return name if not self._own or _THREADS.fullmatch(name) else self._names.of("thread", name)

    def _machine(self, text: str) -> str:
        return self._names.of("machine", text) if self._own or self._paths else text

    def _sentence(self, text: str) -> str:
        return "" if self._own or self._arguments or self._paths else text

    def _quantity(self, name: str) -> str:
        return name if not self._own or is_public_name(name) else self._names.of("value", name)

    def _device(self, name: str) -> str:
        return name if not self._own or is_public_name(name) else self._names.of("device", name)

    def _identity(self, text: str) -> str:
        """As a whole, since of an imported trace it is the name of a file; equal ones stay equal."""
        machine, dot, rest = text.partition(".")
        if _NUMBERS.fullmatch(rest):
            return f"{self._machine(machine)}{dot}{rest}"
        if text.startswith(_IMPORTED):
            return _IMPORTED + self._machine(text)
        return self._machine(text)

    def meta(self) -> dict[str, Any]:
        """Numbers and what is listed; texts of one's own are left out."""
        meta = self._profile.meta
        kept: dict[str, Any] = {
            name: meta[name]
            for name in ("format", "leadline", "started_at_ns", "wall_ns", "cost", "clock", "complete", "fold")
            if name in meta
        }
        if "fold" in kept:
            fold = kept["fold"] if isinstance(kept["fold"], dict) else {}
            kept["fold"] = {**_plain(fold), "job": self._machine(str(fold.get("job") or "")), "order": []}
        for name in ("cost", "clock"):
            kept[name] = _plain(kept.get(name))
        kept["format"] = {"name": "leadline", "version": meta["format"]["version"]}
        kept["leadline"] = _version(meta.get("leadline"))
        kept["program"] = {name: _version(meta["program"].get(name)) for name in ("python", "implementation")}
        argv = meta["program"].get("argv")
        if isinstance(argv, list):
            kept["program"]["argv"] = [self._command(" ".join(str(word) for word in argv))]
        if not self._paths and isinstance(meta["program"].get("cwd"), str):
            kept["program"]["cwd"] = meta["program"]["cwd"]
        kept["asked"] = _plain(meta["asked"])
        kept["available"] = _statuses(meta["available"])
        kept["host"] = {
            name: meta["host"][name]
            for name in ("machine", "cpus")
            if isinstance(meta["host"].get(name), int) or meta["host"].get(name) in _MACHINES
        }
        kept["processes"] = [self._record(record) for record in meta["processes"]]
        kept["redacted"] = self._parts
        return kept

    def _record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        kept = {
            name: value for name in _RECORD if name in record and (value := _number_or_plain(record[name])) is not None
        }
        kept["hostname"] = self._machine(str(record.get("hostname") or ""))
        for name in ("identity", "parent_identity"):
            kept[name] = self._identity(str(record.get(name) or ""))
        launch = record.get("launch")
        if isinstance(launch, dict):
            kept["launch"] = {**_plain(launch), "job": self._machine(str(launch.get("job") or ""))}
        kept["available"] = _statuses(record.get("available"))
        if isinstance(engines := record.get("engines"), list):
            kept["engines"] = [_figures(one) for one in engines]
        return kept


_CHANGED = {
    *(("frames", name) for name in ("name", "file", "module", "detail")),
    ("processes", "name"), ("threads", "name"), ("devices", "name"), ("devices", "uuid"), ("devices", "detail"),
    ("losses", "detail"), ("kernel_events", "name"), ("ranks", "host"), ("ranks", "role"), ("ranks", "identity"),
    ("ranks", "files"), ("ranks", "note"), ("rank_values", "name"),
}  # fmt: skip


def _figures(value: Any) -> Any:
    """What an engine counted: numbers stay, of its words those that every server has; names of requests go."""
    if isinstance(value, dict):
        keys = [name for name in value if name in _ENGINE_KEYS or name in _ENGINE_WORDS or _BIN.fullmatch(str(name))]
        return {name: _figures(value[name]) for name in keys}
    if isinstance(value, list):
        return [_figures(one) for one in value]
    return value if isinstance(value, int | float) or value in _ENGINE_WORDS else ""


def _statuses(available: object) -> dict[str, Any]:
    """Which providers measured, in which version; their sentences may name anything."""
    if not isinstance(available, dict):
        return {}
    return {
        name: {
            "ok": status.get("ok") is True,
            **({"version": _version(status["version"])} if "version" in status else {}),
            **({"role": status["role"]} if status.get("role") in _ROLES else {}),
        }
        for name, status in available.items()
        if isinstance(status, dict) and is_public_name(name)
    }


def _version(value: object) -> str:
    if not isinstance(value, str) or value in _IMPLEMENTATIONS:
        return value if isinstance(value, str) else ""
    public = _VERSION.match(value)  # who built it may have added a word
    return public[0] if public else ""


def _says_nothing(value: object) -> bool:
    return not isinstance(value, str) or is_public_name(value)


def _plain(values: object) -> dict[str, Any]:
    """Numbers and what holds nothing but numbers, by public names."""
    if not isinstance(values, dict):
        return {}
    return {
        name: kept
        for name, value in values.items()
        if is_public_name(name) and (kept := _number_or_plain(value)) is not None
    }


def _number_or_plain(value: object) -> Any:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, list):
        return value if all(isinstance(one, bool | int | float) for one in value) else None
    return _plain(value) if isinstance(value, dict) else None


def _like(values: Array, new: list[int]) -> Array:
    made: Array = values.copy()
    made[:] = new
    return made
