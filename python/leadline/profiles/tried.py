"""What `leadline try` has measured of a program: lines of JSON in `leadline-ledger.jsonl` beside its profile.

Lines that cannot be read are counted and left alone; a ledger that cannot be read is none.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from leadline.profiles.meta import source_hashes

NAME = "leadline-ledger.jsonl"
_MOST_BYTES = 16 << 20


def read(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Entries, oldest first, and the number of lines that are none. Raises OSError."""
    found: list[dict[str, Any]] = []
    bad = 0
    with path.open("rb") as file:
        text = file.read(_MOST_BYTES).decode("utf-8", "replace")
    for line in text.splitlines():
        if not line.strip():
            continue
        try:
            found.append(_checked(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            bad += 1
    return found, bad


def _checked(entry: Mapping[str, Any]) -> dict[str, Any]:
    """With every figure a number; raises for anything else."""
    found = dict(entry)
    for name in ("measured", "predicted"):
        if name == "measured" or found.get(name):
            found[name] = found[name] | {key: float(found[name][key]) for key in ("median", "low", "high")}
    rules, sources = found.get("rules") or (), found.get("sources") or {}
    return found | {
        "remedy": str(found["remedy"])[:200],
        "program": str(found["program"])[:4000],
        "rules": [str(one) for one in rules] if isinstance(rules, list) else [],
        "sources": {str(file): str(text) for file, text in sources.items()},
    }


def newest(entries: Sequence[Mapping[str, Any]], program: str) -> dict[str, Mapping[str, Any]]:
    """The newest entry of each remedy for a program, by its command as it was typed."""
    return {str(one["remedy"]): one for one in entries if one["program"] == program}


def tried_beside(path: Path, meta: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Of the program that the profile at `path` is of; nothing where there is no ledger, or the profile does not say of
    which program it is. `edited`: a file of the program that has changed since."""
    argv = meta.get("program", {}).get("argv")
    try:
        beside = path.parent / NAME
        if not argv or not beside.is_file():
            return ()
        found = newest(read(beside)[0], shlex.join(map(str, argv)))
        hashes = source_hashes(meta)
        return tuple({**one, "edited": _edited(one.get("sources", {}), hashes)} for one in found.values())
    except (OSError, ValueError, TypeError):
        return ()


def _edited(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """A file of the program that is another than when it was measured; empty where none is known to be."""
    differ = sorted(file for file, text in now.items() if text and then.get(file) and then[file] != text)
    return Path(differ[0]).name if differ else ""


def of_rule(tried: Sequence[Mapping[str, Any]], rule: str) -> str:
    """`fused_optimizer -30 % (-33 to -28), where -22 % (-35 to -8) was predicted`, of the remedies of a finding; empty
    where none was tried."""
    said = []
    for one in tried:
        if rule in one["rules"]:
            text = f"{one['remedy']} {_change(one['measured'])}"
            if one.get("predicted"):
                text += f", where {_change(one['predicted'])} was predicted"
            if one.get("edited"):
                text += f", with another {one['edited']} than this profile's"
            said.append(text)
    return "; ".join(said)


def _change(one: Mapping[str, float]) -> str:
    middle, low, high = (f"{100 * one[name]:+.0f}" for name in ("median", "low", "high"))
    return f"{middle} % ({low} to {high})"
