"""A verdict as text: the lines that every host shows first."""

from __future__ import annotations

import textwrap

from leadline.units import counted, duration
from leadline.verdict.model import Account, Fix, Verdict

_LABEL = 10


def as_lines(verdict: Verdict, width: int = 100) -> list[str]:
    """The sentence, because, try, trust: each wrapped to `width` below its label."""
    lines = _wrapped("", verdict.sentence, width, indent=0)
    for number, fact in enumerate(verdict.because):
        lines += _wrapped("  because" if number == 0 else "", fact, width)
    for number, fix in enumerate(verdict.fixes):
        lines += _wrapped("  try" if number == 0 else "  then", fix_text(fix, verdict.account), width)
    if verdict.ask and verdict.kind != "cannot_tell":
        lines += _wrapped("  run", verdict.ask, width)
    lines += _wrapped("trust", verdict.trust, width)
    return lines


def head(verdict: Verdict, *, so_far: bool = False) -> str:
    """`150 steps, 174 ms each`, empty where there is no account. `so_far`: the program goes on."""
    if verdict.title:
        return verdict.title
    account = verdict.account
    if account is None:
        return ""
    if account.of == "run":
        spent = duration(account.wall_ns)
        return f"{spent} so far, no steps yet" if so_far else f"{spent} in all, no steps"
    return f"{counted(account.steps, 'step')}{' so far' if so_far else ''}, {duration(account.wall_ns)} each"


def fix_text(fix: Fix, account: Account | None) -> str:
    """`dropout=0 where the task allows it: about 38 ms of 174 ms (30 to 40 ms), measured  gpt.py:46`."""
    where = f"; tried: {fix.tried}" if fix.tried else ""
    where += f"  {fix.place.text}" if fix.place is not None and fix.place.text else ""
    whole = f" of {duration(account.wall_ns)}" if account is not None else ""
    if fix.known == "at most":
        return f"{fix.do}: at most {duration(fix.high_ns)}{whole}{where}"
    about = f"{fix.do}: about {duration(fix.gain_ns)}{whole}"
    if fix.measured_by and not fix.tried:
        return f"{about}, uncertain; `{fix.measured_by}` measures it{where}"
    low = duration(fix.low_ns) if fix.low_ns else "0"
    return f"{about} ({low} to {duration(fix.high_ns)}), {fix.known}{where}"


def _wrapped(label: str, text: str, width: int, indent: int = _LABEL) -> list[str]:
    return textwrap.wrap(
        text,
        max(width, 60),
        initial_indent=f"{label:<{indent}}" if indent else label,
        subsequent_indent=" " * (indent or _LABEL),
        break_long_words=False,
        break_on_hyphens=False,
    )
