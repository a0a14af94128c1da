"""Text for the demo, made by a small grammar: the same seed gives the same text, so nothing needs to be downloaded."""

from __future__ import annotations

import random

# symbol: its productions; upper-case words are symbols, the rest is text
GRAMMAR: dict[str, tuple[str, ...]] = {
    "TALE": ("CLAUSE .", "CLAUSE , and CLAUSE .", "WHEN , CLAUSE .", "CLAUSE , so CLAUSE .", "QUOTE"),
    "QUOTE": ('" DEPTH ! " calls PERSON .', '" CLAUSE , " says PERSON .'),
    "CLAUSE": ("PERSON ACTION", "THING LIES PLACE", "PERSON finds THING PLACE", "PERSON ACTION PLACE"),
    "WHEN": ("at dawn", "after the storm", "before the tide turns", "on the third night", "in thick fog"),
    "PERSON": ("the ADJECTIVE pilot", "the captain", "a ADJECTIVE sailor", "the ship's boy", "the old navigator"),
    "ACTION": ("lowers THING", "counts the marks on THING", "writes DEPTH in the log", "follows THING", "waits"),
    "THING": ("the leadline", "a ADJECTIVE anchor", "the ADJECTIVE chart", "the sounding lead", "a length of rope"),
    "LIES": ("lies", "rests", "disappears", "turns slowly"),
    "PLACE": ("beside the ADJECTIVE shoal", "under the keel", "near the harbour wall", "in the ADJECTIVE channel"),
    "DEPTH": ("NUMBER fathoms", "by the mark NUMBER", "NUMBER fathoms and sand", "no bottom at NUMBER"),
    "NUMBER": ("two", "three", "five", "seven", "ten", "thirteen", "seventeen", "twenty"),
    "ADJECTIVE": ("quiet", "heavy", "northern", "weathered", "deep", "narrow", "patient", "salt-white"),
}


def make_text(characters: int, seed: int = 0) -> str:
    """At least `characters` characters of sentences, one per line."""
    draw = random.Random(seed)
    lines: list[str] = []
    length = 0
    while length < characters:
        line = _tidy(_expand("TALE", draw))
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines) + "\n"


def _expand(symbol: str, draw: random.Random) -> list[str]:
    words: list[str] = []
    for part in draw.choice(GRAMMAR[symbol]).split():
        words += _expand(part, draw) if part in GRAMMAR else [part]
    return words


def _tidy(words: list[str]) -> str:
    text = " ".join(words).replace('" ', '"', 1).replace(' "', '"')
    for mark in ",.!":
        text = text.replace(f" {mark}", mark)
    return text[0].upper() + text[1:]
