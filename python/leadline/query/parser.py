"""From the text of a query to `syntax.Query`; every mistake is a QueryError with its place.

query     := ["events"] path ["where" condition] ["by" fields] ["show" fields] ["sort" ["-"] field] ["top" INT]
path      := [sep] step {sep step}                 sep := "/" (child), "//" or a blank, "..." (anywhere below)
step      := [kind ":"] pattern ["@" pattern] [":" LINE] ["[" condition "]"]
pattern   := GLOB | "TEXT" | r"REGEX"
condition := "or", "and", "not" and brackets over  value cmp value | field "~" "REGEX" | field "in" "(" values ")"
             | ("under" | "above" | "calls") "(" path ")"
value     := sums, differences, products and quotients of NUMBER [unit], "TEXT", field, field "." stat
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from leadline.query.errors import QueryError
from leadline.query.scanner import Scanner
from leadline.query.syntax import (
    CLAUSES,
    TEXT_FIELDS,
    Arithmetic,
    Both,
    Compare,
    Condition,
    Either,
    Field,
    Not,
    Number,
    Path,
    Pattern,
    Query,
    Relation,
    Step,
    Text,
    Value,
    anything,
    meant_clause,
    unless_any,
)
from leadline.schema import FrameKind

_RELATIONS = ("under", "above", "calls")
_COMPARISONS = ("<=", ">=", "!=", "==", "=", "<", ">", "~")
_MOST_DEEP = 60
_MOST_OPERANDS = 500
"""Chains of and, or, + and * become nested pairs, which are evaluated one inside the other."""
_BARE = re.compile(r"""[^\s,()\[\]"'<>=!~]+""")
_T = TypeVar("_T")


def parse(text: str) -> Query:
    """The query in `text`; raises QueryError."""
    return _Parser(text).query()


def parse_path(text: str) -> Path:
    """A path alone; raises QueryError."""
    parser = _Parser(text)
    path = parser.path()
    if not parser.at.ended:
        raise parser.at.error("a path ends here; nothing may follow")
    return path


class _Parser:
    def __init__(self, text: str) -> None:
        self.at = Scanner(text)
        self.deep = 0
        self.operands = 0

    def query(self) -> Query:
        at = self.at
        events = self._is_events()
        path = self.path()
        where: Condition | None = None
        by: tuple[Field, ...] = ()
        show: tuple[Field, ...] = ()
        sort: Field | None = None
        descending = False
        top: int | None = None
        seen: list[str] = []
        while not at.ended:
            begin = at.skip()
            clause = at.keyword(*CLAUSES)
            if not clause:
                raise at.error(f"a clause is expected here: {', '.join(CLAUSES)}")
            if seen and CLAUSES.index(clause) <= CLAUSES.index(seen[-1]):
                raise at.error(f"{clause!r} comes once and before {seen[-1]!r}" if clause != seen[-1]
                               else f"{clause!r} comes once", begin)  # fmt: skip
            seen.append(clause)
            if clause == "where":
                where = self.condition()
            elif clause == "by":
                by = self._fields(clause)
            elif clause == "show":
                show = self._fields(clause)
            elif clause == "sort":
                descending = at.take("-") == "-"
                sort = self._field("a field is expected after 'sort'")
            else:
                top = self._whole()
        return Query(at.text, events, path, where, by, show, sort, descending, top)

    def path(self) -> Path:
        at = self.at
        begin = at.skip()
        steps: list[Step] = []
        child = False
        dots = False
        while True:
            separator = at.take("//", "/")
            child = separator == "/"
            if at.ended or at.sees(")") or self._at_clause():
                if separator:
                    raise at.error(f"a step is expected after {separator!r}")
                break
            if not separator and at.take("..."):
                dots = True
                continue
            if dots and child:
                steps.append(anything(at.position))
            steps.append(self._next_step(child, steps))
            dots = False
        if dots:
            steps.append(anything(at.position))
        if not steps:
            raise at.error("a path is expected, such as operator:aten::mm")
        return Path(tuple(steps), begin)

    def condition(self) -> Condition:
        return self._nested(self._either)

    def _is_events(self) -> bool:
        at = self.at
        begin = at.skip()
        if at.keyword("events") and not at.ended and not self._at_clause():
            return True
        at.position = begin
        return False

    def _at_clause(self) -> bool:
        begin = self.at.position
        found = self.at.keyword(*CLAUSES)
        self.at.position = begin
        return bool(found)

    def _next_step(self, child: bool, before: list[Step]) -> Step:
        try:
            return self._step(child)
        except QueryError:
            meant = meant_clause(before)
            if meant is None:
                raise
            raise self.at.error(f"this is not a step of a path; did you mean {meant[1]!r}", meant[0].position) from None

    def _step(self, child: bool) -> Step:
        at = self.at
        begin = at.skip()
        kind, name = self._kind_and_name()
        file = line = None
        if isinstance(name, Pattern) and name.how == "glob":
            name, file, line = self._place(name)
        if at.text.startswith("@", at.position) and file is None:
            at.position += 1
            file = self._pattern("a file is expected after '@'")
            if file.how == "glob":
                file, line = self._line(file)
        if line is None and re.match(r":\d", at.text[at.position : at.position + 2]):
            at.position += 1
            line = self._whole()
        condition = None
        if at.text.startswith("[", at.position):
            at.position += 1
            condition = self.condition()
            at.expect("]", "at the end of the step's condition")
        if at.position == begin:
            raise at.error("a step of a path is expected, such as operator:aten::mm")
        return Step(child, kind, unless_any(name), file, line, condition, begin)

    def _kind_and_name(self) -> tuple[FrameKind | None, Pattern | None]:
        at = self.at
        begin = at.position
        found = re.compile(r"([A-Za-z_]+|\*):(?!:)").match(at.text, begin)
        if found is None or re.compile(r"\d+\b").match(at.text, found.end()):
            return None, self._pattern("a name is expected")
        if found[1] != "*" and found[1].upper() not in FrameKind.__members__:
            known = ", ".join(str(kind) for kind in FrameKind)
            raise at.error(f"there is no kind of frame called {found[1]!r}; the kinds are {known}", begin)
        at.position = found.end()
        if at.text[at.position : at.position + 1] in ("@", "["):
            name = None
        else:
            name = self._pattern(f"a name is expected after {found[0]!r}; write {found[0]}* for any")
        return (None if found[1] == "*" else FrameKind[found[1].upper()]), name

    def _pattern(self, wanted: str) -> Pattern:
        at = self.at
        begin = at.position
        if at.text[begin : begin + 2] in ('r"', "r'"):
            at.position += 1
            text = at.quoted() or ""
            return Pattern(_checked_regex(text, at, begin), "regex", begin)
        quoted = at.quoted()
        if quoted is not None:
            return Pattern(quoted, "exact", begin)
        word = at.word()
        if not word:
            raise at.error(wanted)
        return Pattern(word, "glob", begin)

    def _place(self, name: Pattern) -> tuple[Pattern | None, Pattern | None, int | None]:
        """`NAME@FILE:LINE` and `FILE:LINE` inside one word."""
        text, sign, file = name.text.partition("@")
        if sign and not file:
            self.at.position = name.position + len(text) + 1
            return (Pattern(text, "glob", name.position) if text else None), self._pattern("a file is expected"), None
        if sign:
            pattern, line = self._line(Pattern(file, "glob", name.position + len(text) + 1))
            return (Pattern(text, "glob", name.position) if text else None), pattern, line
        pattern, line = self._line(name)
        return pattern, None, line

    @staticmethod
    def _line(pattern: Pattern) -> tuple[Pattern, int | None]:
        found = re.fullmatch(r"(.+[^:]):(\d{1,9})", pattern.text)
        if found is None:
            return pattern, None
        return Pattern(found[1], "glob", pattern.position), int(found[2])

    def _fields(self, clause: str) -> tuple[Field, ...]:
        found = [self._field(f"a field is expected after {clause!r}")]
        while self.at.take(","):
            found.append(self._field("a field is expected after ','"))
        return tuple(found)

    def _field(self, wanted: str) -> Field:
        at = self.at
        begin = at.skip()
        name = at.name()
        if not name:
            raise at.error(wanted)
        stat = ""
        if at.text.startswith(".", at.position):
            at.position += 1
            stat = at.name()
            if not stat:
                raise at.error(f"a statistic is expected after {name + '.'!r}, such as {name}.mean")
        return Field(name, stat, begin)

    def _whole(self) -> int:
        begin = self.at.skip()
        found = re.compile(r"\d{1,9}\b").match(self.at.text, begin)
        if found is None:
            raise self.at.error("a whole number is expected")
        self.at.position = found.end()
        return int(found[0])

    def _nested(self, part: Callable[[], _T]) -> _T:
        self.deep += 1
        if self.deep > _MOST_DEEP:
            raise self.at.error(f"brackets are nested more than {_MOST_DEEP} deep")
        try:
            return part()
        finally:
            self.deep -= 1

    def _count(self) -> None:
        self.operands += 1
        if self.operands > _MOST_OPERANDS:
            raise self.at.error(
                f"a query has at most {_MOST_OPERANDS} conditions and values; `in (...)` takes any number"
            )

    def _either(self) -> Condition:
        left = self._both()
        while self.at.keyword("or"):
            left = Either(left, self._both())
        return left

    def _both(self) -> Condition:
        left = self._single()
        while self.at.keyword("and"):
            left = Both(left, self._single())
        return left

    def _single(self) -> Condition:
        self._count()
        at = self.at
        begin = at.skip()
        if at.keyword("not"):
            return Not(self._nested(self._single))
        name = at.name_ahead()
        if name in _RELATIONS and at.text[begin + len(name) :].lstrip().startswith("("):
            at.position += len(name)
            at.expect("(", f"after {name!r}")
            path = self._nested(self.path)
            at.expect(")", f"at the end of {name}(...)")
            return Relation(name, path, begin)  # type: ignore[arg-type]
        if at.sees("("):
            return self._bracket(begin)
        return self._comparison()

    def _bracket(self, begin: int) -> Condition:
        """Either a condition in brackets or a comparison whose left side begins with one."""
        at = self.at
        at.expect("(", "here")
        try:
            inner = self.condition()
            at.expect(")", "at the end of the brackets")
        except QueryError as first:
            at.position = begin
            try:
                return self._comparison()
            except QueryError as second:
                raise (first if first.position >= second.position else second) from None
        if at.take(*_COMPARISONS, "+", "-", "*", "/"):
            at.position = begin
            return self._comparison()
        return inner

    def _comparison(self) -> Condition:
        at = self.at
        left = self._nested(self._sum)
        begin = at.skip()
        if at.keyword("in"):
            at.expect("(", "after 'in'")
            values = [self._right(left)]
            while at.take(","):
                values.append(self._right(left))
            at.expect(")", "at the end of the values")
            return Compare("in", left, tuple(values), begin)
        sign = at.take(*_COMPARISONS)
        if not sign:
            raise at.error("a comparison is expected here: =, !=, <, <=, >, >=, ~ or in")
        right = self._right(left)
        if sign == "~":
            if not isinstance(right, Text) or at.text[right.position] not in "r\"'":
                raise at.error("a regular expression in quotes is expected after '~'", begin + 1)
            _checked_regex(right.value, at, right.position)
        return Compare("=" if sign == "==" else sign, left, (right,), begin)  # type: ignore[arg-type]

    def _right(self, left: Value) -> Value:
        """The right side of a comparison: beside a text field a single word needs no quotes."""
        at = self.at
        if isinstance(left, Field) and left.name in TEXT_FIELDS and not left.stat:
            begin = at.skip()
            word = _BARE.match(at.text, begin)
            if word is not None and at.text[begin : begin + 2] not in ('r"', "r'"):
                at.position = word.end()
                return Text(word[0], begin)
        return self._nested(self._sum)

    def _sum(self) -> Value:
        left = self._product()
        while True:
            begin = self.at.skip()
            sign = self.at.take("+", "-")
            if not sign:
                return left
            left = Arithmetic(sign, left, self._product(), begin)  # type: ignore[arg-type]

    def _product(self) -> Value:
        left = self._atom()
        while True:
            begin = self.at.skip()
            sign = self.at.take("*", "/")
            if not sign:
                return left
            left = Arithmetic(sign, left, self._atom(), begin)  # type: ignore[arg-type]

    def _atom(self) -> Value:
        self._count()
        at = self.at
        begin = at.skip()
        if at.take("-"):
            return Arithmetic("-", Number(0.0, "any", begin), self._nested(self._atom), begin)
        if at.take("("):
            inner = self._nested(self._sum)
            at.expect(")", "at the end of the brackets")
            return inner
        if at.text[begin : begin + 2] in ('r"', "r'"):
            at.position += 1
        quoted = at.quoted()
        if quoted is not None:
            return Text(quoted, begin)
        number = at.number()
        if number is not None:
            return Number(*number, begin)
        return self._field("a value is expected: a number, a text in quotes or a field")


def _checked_regex(text: str, at: Scanner, position: int) -> str:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise at.error(f"{text!r} is not a regular expression ({error})", position) from None
    return text
