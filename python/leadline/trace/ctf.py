"""CTF traces through `babeltrace2`, which reads what every writer of 1.8 may do: their events as text, parsed here.

What the metadata says of the clock and the machine is read here, since the text leaves it out.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from leadline._dataclass import dataclass, field
from leadline.trace.tables import TraceError

PROGRAM = "babeltrace2"
_PACKET_MAGIC = 0x75D11D57
_PACKET = struct.Struct("16sIIIBBBBB")  # behind the magic: uuid, checksum, bits used, bits of the packet, and five more
_LINE = re.compile(r"^\[(\d+)\] (?:.*? )??([\w./@-]+(?::[\w./@-]+)*): (\{.*)$")
_FIELD = re.compile(
    r'(\w+) = (?:"((?:[^"\\]|\\.)*)"|\( (?:"((?:[^"\\]|\\.)*)"|<unknown>)[^)]*?: container = (-?\d+) \)'
    r"|(-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?)))"
)
_BETWEEN = re.compile(r'"(?:[^"\\]|\\.)*"|( \}, \{ )')  # of groups, where it is in no text
_ESCAPED = re.compile(r"\\(.)")
_DISCARDED = re.compile(r"discarded (\d+) event")
_LOST_PACKETS = re.compile(r"discarded (\d+) packet")
_LEAST_JUMP_NS = 60 * 10**9
_JUMP = 10  # times all that was recorded without it
_PAIR = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|(-?\d+)|(\w+))\s*;')
_NS = 1_000_000_000

Value = str | int | float


@dataclass(frozen=True)
class CtfEvent:
    """One event. `context`: fields of the stream and of all its events; `payload`: its own. Labels of enumerations are
    values."""

    time_ns: int
    name: str
    context: Mapping[str, Value]
    payload: Mapping[str, Value]


@dataclass
class _Gaps:
    """Where a trace holds nothing for long."""

    first_ns: int = -1
    last_ns: int = -1
    longest_ns: int = 0

    def take(self, time_ns: int) -> None:
        if self.first_ns < 0:
            self.first_ns = time_ns
        elif time_ns - self.last_ns > self.longest_ns:
            self.longest_ns = time_ns - self.last_ns
        self.last_ns = time_ns

    def sentence(self) -> str:
        """What to say of the longest; nothing where it is nothing beside the rest."""
        rest_ns = self.last_ns - self.first_ns - self.longest_ns
        if self.longest_ns < max(_LEAST_JUMP_NS, _JUMP * rest_ns):
            return ""
        return (
            f"nothing was recorded for {self.longest_ns / _NS:,.0f} s, with {rest_ns / _NS:.3f} s of events: the "
            "clock jumped, or recording paused"
        )


@dataclass
class CtfTrace:
    """A trace as its metadata has it. `realtime_ns`: CLOCK_REALTIME less its clock, None where it does not say.
    What was lost and damaged is known when all events have been read. `lost_packets`: of events that nobody counted."""

    folder: Path
    name: str
    environment: Mapping[str, Value]
    clock: str = ""
    clock_uuid: str = ""
    frequency: int = _NS
    realtime_ns: int | None = None
    discarded: int = 0
    lost_packets: int = 0
    complete: bool = True
    trouble: str = field(default="", repr=False)
    jump: str = field(default="", repr=False)

    @property
    def of_kernel(self) -> bool:
        """Whether a kernel wrote it, and not a program."""
        return self.environment.get("domain") == "kernel"

    def events(self) -> Iterator[CtfEvent]:
        """All events in order of time. Raises TraceError where there is no reader, or it finds nothing it can read."""
        program = shutil.which(PROGRAM)
        if program is None:
            raise TraceError(
                f"reading {self.name} needs the program {PROGRAM} (Debian and Ubuntu: apt install {PROGRAM})"
            )
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
            command = [program, "--clock-cycles", "--no-delta", str(self.folder)]
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=said, text=True, encoding="utf-8", errors="replace"
            ) as reader:
                assert reader.stdout is not None  # it was asked for
                count = 0
                seen = _Gaps()
                try:
                    for line in reader.stdout:
                        if found := _LINE.match(line):
                            count += 1
                            event = self._event(int(found[1]), found[2], found[3])
                            seen.take(event.time_ns)
                            yield event
                finally:
                    if reader.poll() is None:
                        reader.stdout.close()
                        reader.terminate() if reader.poll() is None else None
                    code = reader.wait()
            said.seek(0)
            self._ended(code, said.read(), count)
            self.jump = seen.sentence()

    def sentences(self) -> list[str]:
        """What else is wrong with it, when all events have been read."""
        lost = f"the tracer lost {self.lost_packets:,} packets of events, without a count"
        return [one for one in (self.trouble, lost if self.lost_packets else "", self.jump) if one]

    def _event(self, cycles: int, name: str, rest: str) -> CtfEvent:
        borders = [found.start() for found in _BETWEEN.finditer(rest) if found[1]]
        context = _fields(rest[: borders[-1]]) if borders else {}
        time = cycles if self.frequency == _NS else cycles * _NS // self.frequency
        return CtfEvent(time, name, context, _fields(rest[borders[-1] :] if borders else rest))

    def _ended(self, code: int, said: str, count: int) -> None:
        told = " ".join(said.split())  # it wraps its lines
        self.discarded = sum(_counted(number) for number in _DISCARDED.findall(told))
        self.lost_packets = sum(_counted(number) for number in _LOST_PACKETS.findall(told))
        if code == 0:
            return
        reason = _reason(said)
        if not count:
            newer = "; CTF 2 needs babeltrace2 2.1" if '"version": 2' in said or "CTF-2" in said else ""
            raise TraceError(f"{self.name} cannot be read by {PROGRAM}: {reason}{newer}")
        self.complete = False
        self.trouble = f"{self.name} ends early or is damaged: {reason}"


def open_ctf(folder: Path, name: str) -> CtfTrace:
    """What the metadata of a trace says. Raises TraceError, and OSError."""
    data = (folder / "metadata").read_bytes()
    return _from_json(folder, name, data) if data[:1] == b"\x1e" else _from_text(folder, name, _text(name, data))


def _text(name: str, data: bytes) -> str:
    """TSDL, taken out of packets where it is in packets."""
    if data.lstrip().startswith(b"/*"):
        return data.decode("utf-8", "replace")
    order = "<" if data[:4] == _PACKET_MAGIC.to_bytes(4, "little") else ">"
    head = struct.Struct(f"{order}I{_PACKET.format}")
    parts = []
    at = 0
    while at + head.size <= len(data):
        magic, _, _, used, whole, packed, *_ = head.unpack_from(data, at)
        if magic != _PACKET_MAGIC or packed or whole < 8 * head.size:
            raise TraceError(f"the metadata of {name} is damaged after {at} bytes")
        parts.append(data[at + head.size : at + used // 8])
        at += whole // 8
    return b"".join(parts).decode("utf-8", "replace")


def _from_text(folder: Path, name: str, text: str) -> CtfTrace:
    environment = _block(text, "env")
    clock = _block(text, "clock")
    if not clock:
        return CtfTrace(folder, name, environment)
    frequency = _whole(clock.get("freq"), _NS) or _NS
    offset = _whole(clock.get("offset_s"), 0) * _NS + _whole(clock.get("offset"), 0) * _NS // frequency
    return CtfTrace(
        folder, name, environment, str(clock.get("name", "")), str(clock.get("uuid", "")), frequency, offset or None
    )


def _from_json(folder: Path, name: str, data: bytes) -> CtfTrace:
    environment: Mapping[str, Value] = {}
    clock: Mapping[str, Any] = {}
    try:
        for fragment in (json.loads(part) for part in data.split(b"\x1e") if part.strip()):
            if fragment.get("type") == "trace-class":
                environment = dict(fragment.get("environment") or {})
            elif fragment.get("type") == "clock-class":
                clock = fragment
        offset = clock.get("offset-from-origin") or {}
        frequency = int(clock.get("frequency") or _NS)
        realtime = int(offset.get("seconds", 0)) * _NS + int(offset.get("cycles", 0)) * _NS // frequency
    except (ValueError, AttributeError, TypeError) as error:
        raise TraceError(f"the metadata of {name} is damaged ({error})") from error
    word = str(clock.get("name", clock.get("id", "")))
    return CtfTrace(folder, name, environment, word, str(clock.get("uid", "")), frequency, realtime or None)


def _block(text: str, word: str) -> dict[str, Value]:
    """The pairs of the first block of this name."""
    found = re.search(rf"^\s*{word}\s*\{{(.*?)^\s*\}};", text, re.DOTALL | re.MULTILINE)
    if found is None:
        return {}
    return {
        name: int(number) if number else _plain(quoted) if quoted or not bare else bare
        for name, quoted, number, bare in _PAIR.findall(found[1])
    }


def _fields(text: str) -> dict[str, Value]:
    """The numbers, texts and labels of one group of fields; what is nested goes by its own name."""
    found: dict[str, Value] = {}
    for name, quoted, label, container, number in _FIELD.findall(text):
        if number:
            found[name] = int(number, 0) if "0x" in number or not set(number) & set(".e") else float(number)
        elif container:
            found[name] = _plain(label) if label else int(container)
        else:
            found[name] = _plain(quoted)
    return found


def _plain(text: str) -> str:
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text


def _whole(value: Value | None, nothing: int) -> int:
    return value if isinstance(value, int) else nothing


def _counted(number: str) -> int:
    """Of counters of 32 bits that began anew the reader takes a difference of 64 bits."""
    return int(number) & 0xFFFFFFFF if int(number) >> 63 else int(number)


def _reason(said: str) -> str:
    """What the reader complained of first, without where in its own source."""
    joined = " ".join(said.split())
    if "last returned timestamp" in joined:
        return "its clock goes back, and a stream must be in order of time"
    if "Invalid packet size reported in file" in joined or "packet-cur=" in joined:
        return "a stream is cut off in the middle of a packet"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("ERROR:", "CAUSED BY", "WARNING:"))]
    return (told or lines or ["it gave no reason"])[-1].rstrip(".")
