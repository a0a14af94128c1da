"""Who wrote what an instruction of a kernel waits for: the text of a function, looked through by its registers.

Of NVIDIA's machine code as nvdisasm writes it. Only those are asked for that take a varying time and are waited for by
the short scoreboard: shared memory, special functions, conversions, shuffles.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from leadline._dataclass import dataclass
from leadline.profiles.tables import Tables

_WRITERS = re.compile(
    r"(LDS|LDSM|ATOMS|MUFU|SHFL|S2R|S2UR|LDC|I2F|F2I|F2F|I2I|FRND|POPC|FLO|BREV|VOTE|MATCH|DMUL|DFMA|DADD)\b"
)
_NO_RESULT = re.compile(r"ST|RED|WARPSYNC|BR|JM|CALL|RET|EXIT|BAR|DEPBAR|MEMBAR|BSSY|BSYNC|R2P|NOP")
"""Operations whose first register is read."""
_REGISTER = re.compile(r"\bR(\d+)\b(\.64)?")
_PREDICATE = re.compile(r"^@!?U?P\w+\s+")
_WIDTH = re.compile(r"\.(64|128)\b")
_MATRIX_WORDS = 4
"""Registers that an operand of a matrix instruction takes at most."""


@dataclass(frozen=True)
class Function:
    """Instructions by their offsets, in order."""

    offsets: list[int]
    texts: list[str]

    def writer(self, offset: int) -> str:
        """The operation that wrote what the instruction there reads, of those above; empty where none did. Code in a
        loop may stand before what writes for its next turn, so the search goes round."""
        at = bisect_left(self.offsets, offset)
        if at >= len(self.offsets) or self.offsets[at] != offset:
            return ""
        wanted = _read(self.texts[at])
        for before in range(1, len(self.texts)):
            text = _PREDICATE.sub("", self.texts[at - before])
            written = _written(text)
            if _WRITERS.match(text) and wanted & written:
                return text.split()[0]
            if text == self.texts[at - before]:  # under a predicate it may have written nothing
                wanted -= written
            if not wanted:
                break
        return ""


def functions(tables: Tables) -> dict[tuple[str, str], Function]:
    """By the hash of their code and their names; those whose instructions are known as text."""
    strings, lines = tables.strings, tables["code_lines"]
    found: dict[tuple[str, str], Function] = {}
    rows = (lines[name].tolist() for name in ("hash", "function", "offset", "text"))
    for code, function, offset, text in sorted(zip(*rows, strict=True)):
        if text:
            one = found.setdefault((strings[code], strings[function]), Function([], []))
            one.offsets.append(offset)
            one.texts.append(strings[text])
    return found


def _operands(text: str) -> list[str]:
    _, _, behind = _PREDICATE.sub("", text).partition(" ")
    return [one for one in behind.split(",") if one.strip()]


def _read(text: str) -> set[int]:
    """Registers, of all operands but the first, which most instructions write; stores write none."""
    operation = _PREDICATE.sub("", text).split(" ")[0]
    operands = _operands(text)
    if not operation.startswith(("ST", "RED")):
        operands = operands[1:]
    words = _MATRIX_WORDS if "MMA" in operation else _words(operation)
    found: set[int] = set()
    for one in operands:
        address = "[" in one
        for register in _REGISTER.finditer(one):
            wide = (2 if register[2] else 1) if address else max(words, 2 if register[2] else 1)
            found.update(range(int(register[1]), int(register[1]) + wide))
    return found


def _written(text: str) -> set[int]:
    if _NO_RESULT.match(text):
        return set()
    operands = _operands(text)
    first = next((found for one in operands[:2] if (found := _REGISTER.fullmatch(one.strip()))), None)
    if first is None:
        return set()
    operation = text.split(" ")[0]
    words = _MATRIX_WORDS if operation.startswith("LDSM") or "MMA" in operation else _words(operation)
    words = max(words, 2) if ".WIDE" in operation else words
    return set(range(int(first[1]), int(first[1]) + words))


def _words(operation: str) -> int:
    wide = _WIDTH.search(operation)
    return int(wide[1]) // 32 if wide else 1
