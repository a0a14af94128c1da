"""The metadata of CTF 1.8 in TSDL (diamon.org/ctf, section 7 and C), as LTTng writes it."""

from __future__ import annotations

from collections.abc import Iterator

from leadline.convert.ctf.layout import Fields, FieldType, Integer, Layout, StreamClass, Text, widths
from leadline.convert.ctf.packets import CONTEXT

_CLOCK = "uint64_clock_t"


def metadata(layout: Layout) -> bytes:
    """The file `metadata`."""
    return "\n".join(_blocks(layout)).encode("utf-8", "backslashreplace")


def _blocks(layout: Layout) -> Iterator[str]:
    yield "/* CTF 1.8 */\n"
    yield f"""trace {{
\tmajor = 1;
\tminor = 8;
\tuuid = "{layout.uuid}";
\tbyte_order = le;
\tpacket.header := struct {{
\t\t{_integer(Integer(32, base=16))} magic;
\t\t{_integer(Integer(8))} uuid[16];
\t\t{_integer(Integer(32))} stream_id;
\t\t{_integer(Integer(64))} stream_instance_id;
\t}};
}};
"""
    pairs = "".join(f"\t{name} = {_value(value)};\n" for name, value in layout.environment.items())
    yield f"env {{\n{pairs}}};\n"
    clock = layout.clock
    yield f"""clock {{
\tname = "{clock.name}";
\tuuid = "{clock.uuid}";
\tdescription = {quoted(clock.description)};
\tfreq = 1000000000;
\toffset = {clock.offset_ns};
}};

typealias integer {{ size = 64; align = 8; signed = false; map = clock.{clock.name}.value; }} := {_CLOCK};
"""
    for name, texts in layout.labels.items():
        for bits in sorted(widths(layout, name)):
            container = _integer(Integer(bits))
            listed = ",\n".join(f"\t{quoted(text)} = {number}" for number, text in enumerate(texts))
            yield f"typealias {container} := {name}_{bits}_t;\nenum {name}_{bits} : {name}_{bits}_t {{\n{listed}\n}};\n"
    for number, stream in enumerate(layout.streams):
        yield from _stream(number, stream)


def _stream(number: int, stream: StreamClass) -> Iterator[str]:
    clocked = {"timestamp_begin": _CLOCK, "timestamp_end": _CLOCK}
    packet = "".join(f"\t\t{clocked.get(name) or _integer(one)} {name};\n" for name, one in CONTEXT.items())
    context = f"\tevent.context := struct {{\n{_members(stream.context)}\t}};\n" if stream.context else ""
    yield f"""stream {{
\tid = {number};
\tevent.header := struct {{
\t\t{_integer(Integer(16))} id;
\t\t{_CLOCK} timestamp;
\t}};
\tpacket.context := struct {{
{packet}\t}};
{context}}};
"""
    for place, event in enumerate(stream.events):
        yield f"""event {{
\tname = {quoted(event.name)};
\tid = {place};
\tstream_id = {number};
\tfields := struct {{
{_members(event.fields)}\t}};
}};
"""


def _members(fields: Fields) -> str:
    return "".join(f"\t\t{_declared(one)} _{name}{_length(one)};\n" for name, one in fields.items())


def _declared(one: FieldType) -> str:
    if isinstance(one, Text):
        return "integer { size = 8; align = 8; signed = true; encoding = UTF8; base = 10; }"
    return f"enum {one.labels}_{one.bits}" if one.labels else _integer(one)


def _length(one: FieldType) -> str:
    return f"[{one.length}]" if isinstance(one, Text) else ""


def _integer(one: Integer) -> str:
    signed = "true" if one.signed else "false"
    return f"integer {{ size = {one.bits}; align = 8; signed = {signed}; encoding = none; base = {one.base}; }}"


def _value(value: str | int) -> str:
    return str(value) if isinstance(value, int) else quoted(value)


def quoted(text: str) -> str:
    """A TSDL string literal: C's escapes; control characters as octal numbers of three digits."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(letter if letter.isprintable() else _octal(letter) for letter in escaped) + '"'


def _octal(letter: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in letter.encode("utf-8", "backslashreplace"))
