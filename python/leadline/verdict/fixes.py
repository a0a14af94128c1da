"""At most three remedies, from the findings: imperative, with the line, their gain capped by the critical resource."""

from __future__ import annotations

import re
from collections.abc import Sequence

from leadline._dataclass import replace
from leadline.analysis.already import NOTHING_NEW
from leadline.analysis.findings import WIDE, Finding, Findings, Line
from leadline.analysis.rules.loading_gain import CROWDING
from leadline.verdict.crowd import Crowd
from leadline.verdict.model import Account, Fix, Place
from leadline.verdict.resource import Resource

MOST = 3
NOT_EXPLAINED = "not_explained"
"""A finding that says where time is, and not how to save it, unless it is a wait."""
_WORTH = 0.03
"""Of the step: a gain that is smaller is no reason to change a program."""
_WORTH_A_CHOICE = 0.15
"""Of the step: a remedy that changes what the program computes gains so much, to be the only one."""
_ON_THE_DEVICE = frozenset(
    (
        *("kernel_fusion", "uncoalesced", "bank_conflicts", "occupancy", "roofline", "matmul_shape", "block_shape"),
        *("small_grid", "scratch_memory", "stall", "communication", "imbalance", "layout_conversion"),
        "double_precision",
    )
)
"""Rules whose remedy shortens what the device does; those of all others leave it as it is."""
CORES = "core"
"""The `rule` of the remedy for time in line for a core, which is no finding: it is no line's fault."""
CORES_REMEDY = (
    "The thread was ready, and others had the cores. Stop other programs, or use fewer threads and loader workers than "
    "there are cores (torch.set_num_threads, DataLoader(num_workers=...)), or raise the container's CPU quota."
)
_CROWDED = 0.1
"""Of the step in line for a core: with less the machine is as busy as machines are."""


def telling(found: Findings, account: Account) -> list[Finding]:
    """Findings that explain a part of the account, cause before symptom, the largest capped gain first."""
    of_ns = max(account.wall_ns, 1)
    special = [one for one in found if (one.rule != "hotspot" or one.of_place) and not _nothing(one)]
    return sorted(special, key=lambda one: (-_expected(one, account) / of_ns, -one.weight, one.rule))


def fixes(found: Sequence[Finding], account: Account, resource: Resource, others: Crowd) -> tuple[Fix, ...]:
    """Remedies of the findings whose gain is worth a change, those of one line once: the larger gain first. That for
    waits for a core is one of them where the program itself is their cause; to stop other programs comes after those
    of the program. Those that change what the program computes come last."""
    cores = None if _tells_what_children_do(found) else _cores(account, others)
    made: list[Fix] = []
    seen: set[tuple[str, int]] = set()
    left = account.wall_ns
    if cores is not None and others.own and resource.kind == CORES:
        made, cores = [cores], None
    for one in sorted(found, key=lambda one: one.changes_result):
        if len(made) == MOST:
            break
        gain = min(_expected(one, account), cap(one, account), left)
        if cores is not None and left > 0 and (one.changes_result or (others.own and cores.gain_ns > gain)):
            made.append(_capped(cores, left))
            left, cores = left - made[-1].gain_ns, None
        place = place_of(one.change_line) if one.change_line else None
        key = (place.file, place.line) if place else (one.rule, 0)
        most = min(cap(one, account), left)
        expected, high = min(_expected(one, account), most), min(_scaled(one.gain.high_ns, one, account), most)
        imperative = _imperative(one.remedy)
        said = one.of_place and any(imperative == fix.do for fix in made)
        alone = all(fix.rule == CORES for fix in made)
        worth = _WORTH_A_CHOICE if one.changes_result and alone else _WORTH
        if key in seen or said or expected < worth * account.wall_ns or _says_where_only(one):
            continue
        seen.add(key)
        low = min(_scaled(one.gain.low_ns, one, account), expected)
        ask = one.measured_by if (high - low) / 2 > WIDE * account.wall_ns else ""
        made.append(Fix(imperative, place, expected, low, high, _how(one), one.rule, ask))
        left -= expected
    if cores is not None and left > 0 and len(made) < MOST:
        made.append(_capped(cores, left))
    return tuple(made)


def disturbed(account: Account, others: Crowd) -> bool:
    """Whether other programs had the cores for so much of the step that its times are not those of the program."""
    return _cores(account, others) is not None and not others.own


def _tells_what_children_do(found: Sequence[Finding]) -> bool:
    """Whether a finding has the place of what takes the cores: to make that cheaper, says it better."""
    return any(one.gain.basis == CROWDING and one.of_place for one in found)


def _says_where_only(one: Finding) -> bool:
    """Whether it knows no remedy: where the time is, is no instruction, nor that the usual ones are in use."""
    if one.remedy.startswith(NOTHING_NEW):
        return True
    return one.rule == NOT_EXPLAINED and not one.gain.expected_ns and not one.of_place


def _capped(one: Fix, left: int) -> Fix:
    return replace(one, gain_ns=min(one.gain_ns, left), high_ns=min(one.high_ns, left))


def _cores(account: Account, others: Crowd) -> Fix | None:
    """Time in line for a core goes with what else runs."""
    waits = next((one for one in account.lane("thread") if one.key == CORES), None)
    if waits is None or waits.share < _CROWDED:
        return None
    return Fix(others.do, None, waits.ns, 0, waits.ns, "at most", CORES)


def cap(one: Finding, account: Account) -> int:
    """What the critical resource leaves: where a device sets the length of the step, what the CPU spares can save no
    more than the device's idle time inside it."""
    lane = account.lane("device")
    if not lane or one.rule in _ON_THE_DEVICE:
        return account.wall_ns
    return sum(part.ns for part in lane if part.group == "idle")


def place_of(line: Line) -> Place:
    short = line.short.rsplit("/", 1)[-1] if line.short.startswith("/") else line.short
    return Place(line.file, line.line, line.function, short, "", "", 0)


def _nothing(one: Finding) -> bool:
    return one.gain.high_ns <= 0 and one.weight < 0.1


def _scaled(ns: int, one: Finding, account: Account) -> int:
    """Gains of rules are of their own base; the account's step is the one that is shown."""
    if one.gain.per != "step" or one.gain.of_ns <= 0:
        return min(ns, account.wall_ns)
    return int(min(ns / one.gain.of_ns, 1.0) * account.wall_ns)


def _expected(one: Finding, account: Account) -> int:
    expected = one.gain.expected_ns or one.gain.high_ns // 4
    return min(_scaled(expected, one, account), cap(one, account))


def _how(one: Finding) -> str:
    if one.gain.basis.startswith("simulated"):
        return "simulated"
    if one.gain.basis.startswith("measured"):
        return "measured"
    return "estimated" if one.gain.expected_ns else "at most"


_MOST_LETTERS = 200
_REASON = re.compile(
    r"^(?:An?|The|Its?|Each|Every|There|Th(?:is|ese)|Such|Few|Too|No|Data|What|Sorting|jax\.jit)\b"
    r"(?:\([^()]*\)|[^()])*?[:;] (?=[a-z])"
)
"""The reason before the instruction of a fix; a colon inside parentheses does not end it."""


def _imperative(remedy: str) -> str:
    """The first sentence, without a reason before what it says to do; of a long one whole clauses, as many as fit."""
    first = re.split(r"(?<=[a-z)\]])[.] ", _REASON.sub("", remedy, count=1), maxsplit=1)[0].rstrip(".")
    first = re.split(r"(?<=[a-z)\]]); ", first, maxsplit=1)[0]
    if len(first) > _MOST_LETTERS:
        first = re.sub(r" \([^()]* [^()]*\)", "", first)
    if len(first) > _MOST_LETTERS:
        ends = [one.start() for one in re.finditer(r"[,;:] ", first[:_MOST_LETTERS])]
        first = re.sub(r",? (?:and|or)$", "", first[: ends[-1]] if ends else first)
    return first[:1].upper() + first[1:]
