"""The sentence: figures of the account in words. Pure functions."""

from __future__ import annotations

from leadline.verdict.model import Part, Place

SHORT = {
    "products": "matrix products and convolutions",
    "transforms": "Fourier transforms",
    "decompositions": "matrix decompositions and solvers",
    "moves": "moving data",
    "random": "random numbers",
    "optimizer": "the optimizer",
    "autograd": "autograd's bookkeeping",
    "calling": "calling operators",
    "python": "Python",
    "collection": "garbage collection",
    "saving": "saving files",
    "rare": "what does not happen in every step",
    "compile": "compiling",
    "data": "waiting for data",
    "device": "waiting for the device",
    "ranks": "communication",
    "core": "waiting for a core",
    "lock": "waiting for a lock",
    "io": "waiting for files or pipes",
    "network": "waiting for the network",
    "child": "waiting for a child process",
    "process": "waiting for the output of another process",
    "kernel": "waiting inside a system call",
    "sleep": "sleeping",
    "brief": "off a core, in short waits",
    "pool": "waiting for XLA to compute",
    "imports": "importing modules",
    "start": "before the first event",
    "unexplained": "unexplained",
}

IDLE = {
    "device": "idle after a wait for it",
    "ranks": "waiting for other ranks",
    "core": "idle while the CPU waits for a core",
    "compile": "idle while the CPU compiles",
}
"""Why a device is idle, where `SHORT` says what a thread does."""


def named(place: Place) -> str:
    """`Series.__getitem__ in Windows.place`, `aten::bernoulli_`, `phrases_of`."""
    function = place.function.rsplit(".<locals>.", 1)[-1]
    if place.what and function and "::" not in place.what and ":" not in place.what:
        return f"{place.what} in {function}" if place.what != function else function
    return place.what or function or place.text


def name_before_line(place: Place) -> str:
    """The same where the line, or the function where there is none, follows anyway; empty where nothing else names the
    place."""
    if place.what and not place.text:
        return place.what
    name = named(place)
    return "" if name == place.text else name


def lines_of(part: Part, most: int = 2) -> str:
    """`gpt.py:46 and 60`: lines of the places of one kind, as a reader finds them."""
    if not part.places:
        return ""
    first = part.places[0]
    if not first.text:
        return f"in {first.function}" if first.function else ""
    same = [one for one in part.places if one.what == first.what and one.ns * 4 >= first.ns]
    texts: list[str] = []
    for one in same:
        if not one.text:
            continue
        text = str(one.line) if texts and one.short == first.short else one.text
        if text not in texts and one.text not in texts:
            texts.append(text)
    return " and ".join(texts[:most])
