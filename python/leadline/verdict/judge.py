"""From a profile to its verdict: the account, the critical resource, and what of the findings explains it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from leadline._dataclass import replace
from leadline.analysis.case import Case, case_of
from leadline.analysis.findings import Finding, Findings
from leadline.analysis.functions import METRIC
from leadline.analysis.rules.communication import late_rank
from leadline.analysis.rules.function_advice import IN_PYTHON
from leadline.analysis.rules.late_line import late_line
from leadline.analysis.rules.place import at_line
from leadline.analysis.rules.whole_arrays import whole_arrays
from leadline.analysis.waiting import METRIC as WAIT
from leadline.engines import engines_of, together
from leadline.engines.words import sentence as serving_sentence
from leadline.engines.words import title as serving_title
from leadline.profiles import Profile
from leadline.profiles.archive import printable
from leadline.profiles.meta import is_imported, typed_command
from leadline.profiles.tried import of_rule
from leadline.schema import FrameKind
from leadline.units import counted, duration, percent
from leadline.verdict.about import Remarks, of_place
from leadline.verdict.account import account, account_of_run
from leadline.verdict.attained import attained
from leadline.verdict.crowd import crowd
from leadline.verdict.device import with_devices
from leadline.verdict.elsewhere import computing, makers, pool_in_line
from leadline.verdict.fixes import NOT_EXPLAINED, cap, disturbed, fixes, place_of, telling
from leadline.verdict.model import CLASSES, Account, Fix, Part, Place, Verdict
from leadline.verdict.one_by_one import RULE as ONE_BY_ONE
from leadline.verdict.one_by_one import one_by_one
from leadline.verdict.received import incomplete, received
from leadline.verdict.resource import CALL_NS, FEWEST_STEPS, Resource, critical, unsure
from leadline.verdict.trust import trust
from leadline.verdict.words import SHORT, lines_of, name_before_line, named

_WORTH_SAYING, _WORTH_SAYING_UNSURE = 0.05, 0.15
_MOST_FACTS = 3
_IDLE = {
    "launch": "launch-bound: the device is idle while the CPU launches",
    "unrecorded": "waits for the device, which runs CUDA graphs whose kernels the trace does not hold",
    "device": "synchronises with the device, which has no work meanwhile",
    "data": "waits for data, the device is idle meanwhile",
    "ranks": "waits for other ranks, the device is idle meanwhile",
    "core": "waits for a core, the device is idle meanwhile",
    "compile": "compiles, the device is idle meanwhile",
}
_MOSTLY = 0.2
"""Of a part of the account: a place with less of it is not what the part is."""
_EXPLAINS = 0.08
"""Of the step that a finding gains (expected), to be said in the verdict."""
_SAME_STEPS = 0.05
"""Of the steps of generate(): an account of so nearly as many is of these."""
_OF_WAITING = 0.2
"""Of the wait for ranks: a lateness that would gain less is not what it is for."""
_CROWDED = 0.1
"""Of the step in line for a core: what operators reach beside so much other work says nothing of them."""
_COMPUTES = frozenset(("compute", "memory", "dispatch"))
_WHOLE_PART = {
    "random": ("random_numbers",),
    "collection": ("garbage_collection",),
    "saving": ("saving_in_loop",),
    "optimizer": ("optimizer_loop",),
}
"""Rules whose title says all that a part of the account says."""
_OTHERS_WORK = frozenset(("process", "child", "data"))
"""Waits for what other processes do."""
_SYMPTOMS = frozenset(("cpu_latency",))
"""Rules that say what the account says, less exactly."""


def judge(profile: Profile, found: Findings | None = None) -> Verdict:
    """The verdict of a profile; `found`: its findings, where they are known already."""
    case = case_of(profile)
    made = account(case) or account_of_run(case)
    if made is None:
        return _nothing(profile)
    made = with_devices(case, made)
    if found is None:
        from leadline.analysis.analyze import quiet

        found = quiet(profile, case=case)
    samples = int(case.tree.exclusive(METRIC).count.sum())
    largest = critical(made)
    single = case.optional(lambda: one_by_one(case, made, largest, found))
    resource = single[0] if single else largest
    if resource.kind == "python" and case.optional(lambda: [_of_arrays(case, _first(resource.part))]) == [True]:
        resource = replace(resource, kind="numpy")
    ask = _missing(case, made, resource, samples)
    ranked = [one for one in telling(found, made) if one.rule not in _SYMPTOMS or resource.kind == "launch"]
    telling_more = [one for one in ranked if not single or one.rule != ONE_BY_ONE]
    said = [one for one in telling_more if _explains(one, made) and one.rule not in _SYMPTOMS]
    said = [one for one in said if one.rule != NOT_EXPLAINED or not _at(one, _first(resource.part))]
    said = [one for one in said if not _in_sentence(one, resource)]
    others = crowd(case)
    sentence, place = _sentence(made, resource, ask, others.who)
    if resource.kind == "ranks":
        ranks = case.optional(lambda: [_of_ranks(case, found, made, sentence, place)])
        sentence, place, late = ranks[0] if ranks else (sentence, place, False)
        if late:  # what is waited for is no communication to be overlapped
            ranked = [one for one in ranked if one.rule != "communication"]
            said = [one for one in said if one.rule != "communication"]
    remarks = Remarks(case, place)
    known = of_place(case, place)
    if any(" early in the run" in one for one in known):  # the same growth, which others' load makes another figure
        telling_more = [one for one in telling_more if one.rule != "grows" or not _at(one, place)]
        said = [one for one in said if one in telling_more]
    facts = (
        [*_waited_for(found), *_because(remarks, made, resource, said)]
        if resource.kind == "ranks"
        else _because(remarks, made, resource, said)
    )
    if resource.kind in _COMPUTES and made.share("core") < _CROWDED:
        for reached in case.optional(lambda: [attained(case)]):
            if reached is not None and reached.ns - reached.best_ns >= _WORTH_SAYING * made.wall_ns:
                facts.append(reached.words)  # known causes come first
    if others.children and (resource.contended or made.share("core") >= _CROWDED):
        facts[:0] = case.optional(lambda: computing(case, remarks))
    elif resource.part is not None and resource.part.key in _OTHERS_WORK:
        facts[:0] = case.optional(lambda: makers(case))
    elif resource.part is not None and resource.part.key == "pool":
        facts[:0] = case.optional(lambda: pool_in_line(case))
    title = ""
    trains = case.named(FrameKind.PHASE, "backward").any()
    if not trains and (engine := together(engines_of(profile.meta))) is not None:
        if engine.called:  # by the program itself, which is no server
            title = _of_generate(made, engine.number_of_steps)
            facts.insert(0, serving_sentence(engine))
        else:  # requests first, then what a step does
            title = serving_title(engine)
            of = "a step of the model takes" if made.of == "step" else "the run took"
            facts.insert(0, f"{of} {duration(made.wall_ns)}: {sentence}")
            sentence = serving_sentence(engine)
    proposed = fixes(ranked, made, resource, others)
    return Verdict(
        "cannot_tell" if ask and resource.kind == "cannot_tell" else resource.kind,
        sentence,
        place,
        (
            *known,
            *_with_reason(remarks, [*incomplete(profile)[:1], *facts][:_MOST_FACTS], proposed, telling_more, resource),
        ),
        tuple(replace(one, tried=of_rule(profile.tried, one.rule)) for one in proposed),
        trust(profile, made, samples, case.failed, disturbed=disturbed(made, others)),
        made,
        ask,
        title,
        received(profile),
    )


def _of_generate(made: Account, steps: int) -> str:
    """The title where the account's steps are those of generate(), so that all figures are of one length of a step."""
    if made.of != "step" or abs(made.steps - steps) > _SAME_STEPS * steps:
        return ""
    return f"{counted(made.steps, 'step')} of generate(), {duration(made.wall_ns)} each"


def quietly(profile: Profile, found: Findings | None = None) -> Verdict:
    """The same for a report, which is worth showing without it: where judging fails, the verdict says so."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return profile.verdict if found is None else judge(profile, found)
    except Exception as error:
        what = printable(f"{type(error).__name__}: {error}", 200)
        return replace(_nothing(profile), sentence=f"cannot tell: judging failed ({what}; please report it)", ask="")


def _nothing(profile: Profile) -> Verdict:
    return Verdict(
        "cannot_tell",
        "cannot tell: nothing that takes time was measured",
        None,
        (),
        (),
        trust(profile, None, 0),
        None,
        "leadline why PROGRAM",
    )


def _missing(case: Case, made: Account, resource: Resource, samples: int) -> str:
    """What to run where the evidence is not enough for a class."""
    program = "leadline why " + typed_command(case.profile.meta)
    imported = is_imported(case.profile.meta)
    if made.of == "step" and made.steps < FEWEST_STEPS and not imported:
        return f"{program} (only {counted(made.steps, 'step')} measured)"
    looked = samples > 0 and bool(case.tree.exclusive(WAIT).count.any())  # `why` knows no more than such a file
    return program if resource.kind == "cannot_tell" and not imported and not looked else ""


def _of_ranks(
    case: Case, found: Findings, made: Account, sentence: str, place: Place | None
) -> tuple[str, Place | None, bool]:
    """Who is late, and on which line, says more than that ranks wait. The last: whether one is."""
    waited = max(made.share("ranks"), made.share("communication"))
    start = f"{CLASSES['ranks']}, {percent(waited)} of the {made.of}"
    late = next((one for one in found if one.rule == "imbalance" and one.gain.share >= _OF_WAITING * waited), None)
    if late is not None:
        at = place_of(late.lines[0]) if late.lines else None  # never the line that waits
        where = f"   {at.text}" if at is not None and at.text else ""
        return f"{start}: {late.title[0].lower()}{late.title[1:]}{where}", at, True
    rank = late_rank(case)
    if rank < 0:
        return sentence, place, False
    own = late_line(case, rank)
    line = None if own is None else case.line(own.row)
    if own is None or line is None:
        return f"{start}: rank {rank} is last", None, True
    at = place_of(line)
    function = f" in {line.function}" if line.function else ""
    longer = f"{duration(own.excess_ns)} longer than the others{function}"
    return f"{start}: rank {rank} is last, {longer}   {at.text}", at, True


def _waited_for(found: Findings) -> list[str]:
    """What the rule of communication knows of the ranks that are waited for."""
    return [
        text for one in found if one.rule == "communication" for text in one.evidence if "waiting for rank" in text
    ][:1]


def _sentence(made: Account, resource: Resource, ask: str, who: str) -> tuple[str, Place | None]:
    part = resource.part
    if part is None and resource.kind == "core":
        return f"{CLASSES['core']}, {percent(made.share('core'))} of the {made.of} ({who})", None
    if resource.kind == "cannot_tell" or part is None:
        known = f"; the largest known part is {SHORT.get(part.key, part.label)}, {percent(part.share)}" if part else ""
        unexplained = f"{percent(made.share('unexplained'))} of the {made.of} is not explained{known}"
        return f"{CLASSES['cannot_tell']}: {unexplained}" + (f"; run {ask}" if ask else ""), _first(part)
    words = _class_words(made, resource, part)
    if resource.contended:
        rest = duration(made.wall_ns - made.ns("core"))
        words = (
            f"{CLASSES['core']}, {percent(resource.contended)} of the {made.of} ({who}); in the other {rest}: {words}"
        )
    return words, _first(part)


def _first(part: Part | None) -> Place | None:
    return part.places[0] if part is not None and part.places else None


def _class_words(made: Account, resource: Resource, part: Part) -> str:
    share = percent(part.share)
    where = lines_of(part)
    at = f"   {where}" if where else ""
    top = part.places[0] if part.places else None
    if part.lane == "device":
        if part.group == "idle":
            busy = percent(sum(one.ns for one in made.lane("device") if one.group == "busy") / max(made.wall_ns, 1))
            known = named(top) if top is not None and part.key in ("device", "unrecorded", "data") else ""
            named_wait = f": {known}" if known else ""
            return f"{_IDLE[part.key]}, {duration(part.ns)}, {share} of the {made.of} (busy {busy}){named_wait}{at}"
        return f"{CLASSES[resource.kind]}: {part.label}, {duration(part.ns)}, {share} of the {made.of}{at}"
    random = next((one for one in made.parts if one.key == "random"), None)
    if resource.kind in ("compute", "memory") and random is not None and random.share >= 0.15 and random.places:
        # what can be left out says more than what is largest
        return (
            f"{CLASSES[resource.kind]}, {percent(random.share)} of it random numbers: "
            f"{random.places[0].what} {duration(random.ns)} a {made.of}   {lines_of(random)}"
        )
    whole = f"{duration(part.ns)}, {share} of the {made.of}"
    if top is None:
        return f"{CLASSES[resource.kind]}: {SHORT.get(part.key, part.label)} {whole}"
    name = name_before_line(top)
    if resource.kind in ("python", "numpy"):
        takes = (
            f"{name}{name and ' takes '}{duration(top.ns)}, {percent(top.ns / max(made.wall_ns, 1))} of the {made.of}"
        )
        rest = f" (Python in all {share})" if part.ns > 1.2 * top.ns else ""
        return f"{CLASSES[resource.kind]}: {takes}{rest}{at}"
    if resource.kind in ("compute", "memory", "random"):
        return f"{CLASSES[resource.kind]}: {SHORT[part.key]} {whole}{_most(part, name)}{at}"
    if resource.kind == "dispatch" and made.called <= 1 and made.of == "step":
        return f"{CLASSES['dispatch']}: {made.steps:,} calls, of which each takes {whole} to make{at}"
    if resource.kind == "dispatch":
        several = 0 < part.ns <= CALL_NS * made.called  # else another operator calls most of them
        number = f"calling {made.called:,} of them" if several else "calling them"
        return f"{CLASSES['dispatch']}: {number} takes {whole}{_most(part, name)}{at}"
    if resource.kind == "blocked":
        return f"{part.label}, {whole}" + (f": {name}" if name else "") + at
    if resource.kind == "data":
        most = f" {duration(top.ns)}" if top.ns >= _MOSTLY * part.ns else ""  # else the process only waits there
        return f"{CLASSES['data']}, {whole}" + (f": {name}{most}" if name else "") + at
    again = " again" if resource.kind == "compile" and made.of == "step" else ""
    what = name if resource.kind != "imports" else ""
    return f"{CLASSES[resource.kind]}{again}, {whole}" + (f": {what}" if what else "") + at


def _most(part: Part, name: str) -> str:
    """What the named place is of the part: `, most of it aten::mm`; empty where only its line names it."""
    if not name:
        return ""
    named_ns = sum(one.ns for one in part.places if one.what == part.places[0].what)
    return f", {'most of it' if 2 * named_ns >= part.ns else 'the largest share of it'} {name}"


def _of_arrays(case: Case, place: Place | None) -> bool:
    """Whether what Python calls on that line is NumPy's work on whole arrays."""
    at = at_line(case, place.file, place.line) if place is not None else None
    return at is not None and whole_arrays(case, at.rows) is not None


def _because(remarks: Remarks, made: Account, resource: Resource, found: list[Finding]) -> list[str]:
    """Facts that the same file holds: the findings that explain it first, then the next parts of the account."""
    facts = [_fact(remarks, one) for one in found[:2]]
    part = resource.part
    said = {"core"} if resource.contended else {"unexplained"} if resource.kind == "cannot_tell" else set()
    said |= {part.key} if part is not None else set()
    for other in made.lane(part.lane if part else "thread"):
        least = _WORTH_SAYING_UNSURE if unsure(other) else _WORTH_SAYING
        if other.key in said or other.share < least or _is_said(other, found[:2]):
            continue
        where = lines_of(other)
        name = name_before_line(other.places[0]) if other.places else ""
        name = "" if where == f"in {name}" else name  # no name twice
        top = f": {name}" if name else ""
        words = f"{SHORT.get(other.key, other.label)} {duration(other.ns)}, {percent(other.share)} of the {made.of}"
        few = " (by few samples)" if unsure(other) else ""
        more = remarks.of_place(_first(other)) if where else ""
        facts.append(words + few + (f"{top}  {where}" if where else "") + more)
    return facts


def _is_said(part: Part, found: Sequence[Finding]) -> bool:
    """Whether a finding has named the whole of a part, at its line."""
    lines = {(place.file, place.line) for place in part.places}
    return any(
        (
            one.rule in _WHOLE_PART.get(part.key, ())
            or (part.key == "python" and not unsure(part) and one.title.endswith(IN_PYTHON))
        )
        and bool(one.lines)
        and (one.lines[0].file, one.lines[0].line) in lines
        for one in found
    )


def _title(one: Finding) -> str:
    return one.title + _line(one)


def _line(one: Finding) -> str:
    """`  train.py:41`, as it follows a title; empty where it has none."""
    return f"  {_short(one.lines[0].short)}:{one.lines[0].line}" if one.lines else ""


def _fact(remarks: Remarks, one: Finding) -> str:
    return _title(one) + (remarks.of_finding(one) if one.lines else "")


def _place(one: Finding) -> Place | None:
    return place_of(one.lines[0]) if one.lines else None


def _with_reason(
    remarks: Remarks, facts: list[str], proposed: Sequence[Fix], found: list[Finding], resource: Resource
) -> list[str]:
    """The facts with the finding whose remedy is proposed first, in place of the last one where there are many."""
    top = proposed[0] if proposed else None
    of_top = (one for one in found if top and one.rule == top.rule and _place(one) == top.place)
    first = next(of_top, None)
    if first is None or _in_sentence(first, resource) or any(one.startswith(_title(first)) for one in facts):
        return facts
    where = _line(first)
    if first.rule == NOT_EXPLAINED and where and any(f"{where} " in f"{one} " for one in facts):
        return facts  # the account has named that place with its time
    return [*facts[: _MOST_FACTS - 1], _fact(remarks, first)]


def _at(one: Finding, place: Place | None) -> bool:
    """Whether the sentence has named that line."""
    return place is not None and bool(one.lines) and (one.lines[0].file, one.lines[0].line) == (place.file, place.line)


def _in_sentence(one: Finding, resource: Resource) -> bool:
    """Whether the sentence says what the title says: how much of the step a function of Python takes."""
    return resource.kind == "python" and one.title.endswith(IN_PYTHON) and _at(one, _first(resource.part))


def _short(name: str) -> str:
    return name.rsplit("/", 1)[-1] if name.startswith("/") else name


def _explains(one: Finding, made: Account) -> bool:
    gain = one.gain.expected_ns / one.gain.of_ns if one.gain.of_ns else 0.0
    if cap(one, made) < _EXPLAINS * made.wall_ns:
        return False
    return gain >= _EXPLAINS or (one.severity.value == "warning" and one.weight >= _EXPLAINS)
