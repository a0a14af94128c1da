"""CTF 1.8 traces as other machines write them: any byte order and width of words, packets that say what was lost."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

_MAGIC = 0xC1FC1FC1
_TRACE = UUID("2a6422d0-6cee-11e0-8c08-cb07d7b3a564")
_SWITCH, _WAKING, _BEGIN, _END = range(4)
_STATE = 2  # of a switch's fields, a long


@dataclass(frozen=True)
class Machine:
    """Who wrote the trace. `order`: TSDL's word for the byte order; `word`: bits of a long. `offset_ns` None: the trace
    does not say when its clock began."""

    order: str = "le"
    word: int = 64
    boot_id: str = "0f2f7b4e-7a3a-4b0e-9a52-6f1d2c3b4a59"
    offset_ns: int | None = 10**18
    host: str = "node0"
    domain: str = "kernel"


@dataclass(frozen=True)
class Packet:
    """`events`: (time, number of the class, fields). `discarded` and `number` count as LTTng's do, from the beginning."""

    events: Sequence[tuple[int, int, tuple[object, ...]]]
    discarded: int = 0
    number: int = 0


def switch(time: int, left: tuple[str, int], state: int, came: tuple[str, int]) -> tuple[int, int, tuple[object, ...]]:
    """The scheduler takes the CPU from a thread (name, id), which is in `state` then, and gives it to another."""
    return time, _SWITCH, (*left, state, *came)


def waking(time: int, name: str, tid: int) -> tuple[int, int, tuple[object, ...]]:
    """A thread is woken by who runs."""
    return time, _WAKING, (name, tid)


def begin(time: int, name: str) -> tuple[int, int, tuple[object, ...]]:
    """A span of a program begins."""
    return time, _BEGIN, (name,)


def end(time: int) -> tuple[int, int, tuple[object, ...]]:
    """The innermost span ends."""
    return time, _END, ()


def write(folder: Path, machine: Machine, streams: Sequence[Sequence[Packet]]) -> Path:
    """A trace of one stream for each CPU (kernel) or thread (ust)."""
    folder.mkdir(parents=True)
    (folder / "metadata").write_text(_metadata(machine), encoding="utf-8")
    for number, packets in enumerate(streams):
        (folder / f"stream_{number}").write_bytes(b"".join(_packet(machine, number, one) for one in packets))
    return folder


def _packet(machine: Machine, cpu: int, packet: Packet) -> bytes:
    sign = "<" if machine.order == "le" else ">"
    word = "i" if machine.word == 32 else "q"
    body = b""
    for time, kind, fields in packet.events:
        body += struct.pack(f"{sign}HQi", kind, time, 100)  # the class, when, and whose event it is
        for at, value in enumerate(fields):
            long = kind == _SWITCH and at == _STATE
            body += (
                value.encode() + b"\0"
                if isinstance(value, str)
                else struct.pack(f"{sign}{word if long else 'i'}", value)
            )
    times = [time for time, *_ in packet.events] or [0]
    head = struct.pack(f"{sign}I16s", _MAGIC, _TRACE.bytes)
    context = struct.Struct(f"{sign}QQQQ{'II' if machine.word == 32 else 'QQ'}I")
    bits = 8 * (len(head) + context.size + len(body))
    return head + context.pack(times[0], times[-1], bits, bits, packet.discarded, packet.number, cpu) + body


def _metadata(machine: Machine) -> str:
    def whole(bits: int, *, signed: bool = False) -> str:
        return f"integer {{ size = {bits}; align = 8; signed = {'true' if signed else 'false'}; }}"

    text = "string { encoding = UTF8; }"
    number, long = whole(32, signed=True), whole(machine.word, signed=True)
    tracer = "lttng-modules" if machine.domain == "kernel" else "lttng-ust"
    offset = f"offset = {machine.offset_ns}; " if machine.offset_ns is not None else ""
    fields = {
        "sched_switch": f"{text} prev_comm; {number} prev_tid; {long} prev_state; {text} next_comm; {number} next_tid;",
        "sched_waking": f"{text} comm; {number} tid;",
        "work:step_begin": f"{text} name;",
        "work:step_end": "",
    }
    events = "".join(
        f'event {{ name = "{name}"; id = {place}; fields := struct {{ {own} }}; }};\n'
        for place, (name, own) in enumerate(fields.items())
    )
    return f"""/* CTF 1.8 */
trace {{ major = 1; minor = 8; uuid = "{_TRACE}"; byte_order = {machine.order};
\tpacket.header := struct {{ {whole(32)} magic; {whole(8)} uuid[16]; }};
}};
env {{
\tdomain = "{machine.domain}";
\ttracer_name = "{tracer}";
\thostname = "{machine.host}";
}};
clock {{
\tname = "monotonic"; uuid = "{machine.boot_id}";
\tfreq = 1000000000; {offset}
}};
typealias integer {{ size = 64; align = 8; signed = false; map = clock.monotonic.value; }} := stamp;
stream {{
\tevent.header := struct {{ {whole(16)} id; stamp timestamp; }};
\tevent.context := struct {{ {number} {"tid" if machine.domain == "kernel" else "vtid"}; }};
\tpacket.context := struct {{
\t\tstamp timestamp_begin; stamp timestamp_end; {whole(64)} content_size; {whole(64)} packet_size;
\t\t{whole(machine.word)} events_discarded; {whole(machine.word)} packet_seq_num; {whole(32)} cpu_id;
\t}};
}};
{events}"""
