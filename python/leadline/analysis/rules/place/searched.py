"""What a place looks for or does in vain: lists searched, patterns compiled anew, queries, results thrown away."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from leadline.analysis.calls_in_source import name_of, text_of
from leadline.analysis.case import Case
from leadline.analysis.origin import Origin, origin
from leadline.analysis.rules.place.at import At, cost_of, own_nodes, statement_at
from leadline.analysis.rules.place.fact import Fact
from leadline.analysis.scopes import in_called
from leadline.schema import FrameKind
from leadline.units import percent

_LONGEST = 50
_MAKES_LISTS = frozenset(("list", "sorted", "tolist", "split", "splitlines", "readlines", "to_list"))
_QUERY = re.compile(r"\s*(?:select|with|insert|update|delete)\b", re.IGNORECASE)
_RUNS_QUERIES = frozenset(("execute", "executemany", "read_sql", "read_sql_query"))
_INDEX = (
    "Ask `EXPLAIN QUERY PLAN` (or EXPLAIN) of this query whether it scans the table: then add an index on the columns "
    "of its WHERE and ORDER BY. Fetch the rows of a whole batch with one query."
)
_DECODED = (
    "Decompress once: store what is read often uncompressed (a memory-mapped .npy), or keep it in memory. Part of an "
    "array in a compressed file costs as much as all of it."
)
_SPENDS = (
    (
        r"/(?:re/_(?:compiler|parser|constants)|sre_(?:compile|parse|constants))\.py$",
        "compiling regular expressions again",
        "Compile each pattern once, outside of the loop, or join them into one pattern: re keeps 512 compiled patterns "
        "and compiles all others again at each call.",
    ),
    (r"/_strptime\.py$", "parsing dates by strptime", "Parse all dates once, before the loop."),
    (r"/(?:warnings|linecache|traceback|tokenize)\.py$", "making warnings or tracebacks", ""),
    (r"/(?:inspect|ast|typing)\.py$", "inspecting source code and signatures", ""),
    (r"/(?:gzip|_compression|lzma|bz2|zipfile(?:/__init__)?)\.py$", "reading compressed files", _DECODED),
    (r"/(?:fractions|statistics|decimal|_pydecimal)\.py$", "exact arithmetic in Python", ""),
    (r"/(?:subprocess|multiprocessing/popen_\w+)\.py$", "starting processes", ""),
    (r"/(?:urllib|http|requests|urllib3|httpx|socket|ssl)(?:/|\.py$)", "talking to a server", ""),
    (
        r"/(?:matplotlib|mpl_toolkits|seaborn|plotly)/",
        "drawing a figure",
        "Draw the figure every hundredth step, or after training from numbers that were kept.",
    ),
    (r"/torch/distributions/constraints\.py$", "checking arguments of distributions", ""),
)
"""Files of libraries that say what their time is for; the last: what to do instead."""
_MUCH = 0.3
"""Of the place's time."""


def searched(case: Case, at: At) -> list[Fact]:
    """Nothing where neither samples nor the source say so."""
    found = list(_spends(case, at))
    if at.statement is not None:
        nodes = own_nodes(at.statement)
        found += [*_membership(at, nodes), *_queries(nodes)]
    return [*found, *_skipped_later(case, at)]


def _spends(case: Case, at: At) -> Iterator[Fact]:
    cost = cost_of(case)[at.mine]
    whole = max(float(cost.sum()), 1.0)
    for pattern, words, instead in _SPENDS:
        share = float(cost[in_called(case.tree, case.analysis.scopes, pattern)[at.mine]].sum()) / whole
        if share >= _MUCH:
            yield Fact("spends", f"spends {percent(share)} of it {words}", 0.8, instead)


def _membership(at: At, nodes: list[ast.AST]) -> Iterator[Fact]:
    """`cell in self.shelves`, where that is a list."""
    for node in nodes if not at.operator else ():
        if isinstance(node, ast.Compare) and isinstance(node.ops[-1], ast.In | ast.NotIn):
            whose = node.comparators[-1]
            if _is_list(at, whose):
                text = text_of(whose, _LONGEST)
                instead = f"Make {text} a set or a dict: `in` compares a list's elements one after the other."
                yield Fact(
                    "reads",
                    f"looks for {text_of(node.left, _LONGEST)} in the list {text} from its start",
                    0.75,
                    instead,
                )


def _is_list(at: At, node: ast.expr) -> bool:
    """Whether all that the source assigns to it are lists, longer than what is written out."""
    tree = at.source.tree if at.source is not None else None
    if tree is None or not isinstance(node, ast.Name | ast.Attribute):
        return False
    name = ast.unparse(node)
    function = at.function
    inside = isinstance(node, ast.Name) and isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    values = _assigned(function, name) if inside and function is not None else []
    if inside and not values and name in _arguments(function):
        return False
    values = values or _assigned(tree, name)
    filled = any(_fills(one, name) for one in ast.walk(tree))
    return bool(values) and all(_makes_list(one, filled=filled) for one in values)


def _arguments(function: ast.AST | None) -> set[str]:
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return set()
    given = function.args
    return {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)}


def _assigned(tree: ast.AST, name: str) -> list[ast.expr]:
    found = []
    for node in ast.walk(tree):
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign | ast.For | ast.comprehension)
            else []
        )
        value = node.iter if isinstance(node, ast.For | ast.comprehension) else getattr(node, "value", None)
        if value is not None and any(ast.unparse(one) == name for one in targets):
            is_element = isinstance(node, ast.For | ast.comprehension)
            found.append(ast.Constant(None) if is_element else value)  # an element may be anything
    return found


def _fills(node: ast.AST, name: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("append", "extend")
        and ast.unparse(node.func.value) == name
    )


def _makes_list(value: ast.expr, *, filled: bool) -> bool:
    if isinstance(value, ast.List):
        return filled or len(value.elts) > 16
    if isinstance(value, ast.ListComp):
        return True
    if isinstance(value, ast.Call):
        called = value.func
        name = name_of(called)
        return name in _MAKES_LISTS
    return False


def _queries(nodes: list[ast.AST]) -> Iterator[Fact]:
    """`db.execute("SELECT ...")`."""
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _RUNS_QUERIES:
            query = next((_words(one) for one in node.args if _QUERY.match(_words(one))), "")
            if query:
                shown = " ".join(query.split())
                shown = shown if len(shown) <= 2 * _LONGEST else shown[: 2 * _LONGEST - 1] + "…"
                yield Fact("does", f"runs the query {shown}", 0.7, _INDEX)


def _words(node: ast.expr) -> str:
    """Of a text or an f-string what is written out."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    parts = node.values if isinstance(node, ast.JoinedStr) else []
    return "".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in parts)


def _skipped_later(case: Case, at: At) -> list[Fact]:
    """`sample = parse(line)`, then `if number % total != worker: continue`: at the line, or at one that calls it."""
    tree = case.tree
    for row in reversed(tree.path_rows(at.row)):
        if tree.kinds[row] != int(FrameKind.PYTHON):
            continue
        node = tree.node(row)
        source = case.sources.of(node.file) if origin(node.file) == Origin.USER else None
        if source is None:
            continue
        statement = statement_at(source, node.line)
        test = _test_after(source.function(node.line), statement) if statement is not None else None
        if test is not None:
            text = text_of(test, _LONGEST)
            here = "" if node.line == at.line else f" of line {node.line}"
            return [
                Fact(
                    "order",
                    f"makes a result{here} that is discarded where {text} (line {test.lineno})",
                    0.85,
                    f"Test {text} first, so that nothing is made for what is left out.",
                )
            ]
        if source.loops(node.line):
            return []
    return []


def _test_after(function: ast.AST | None, statement: ast.stmt) -> ast.expr | None:
    """The test that skips an iteration after the statement in the same loop, though it asks for none of its results."""
    if not isinstance(statement, ast.Assign) or function is None:
        return None
    made = {one.id for target in statement.targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    for loop in ast.walk(function):
        if not isinstance(loop, ast.For | ast.While | ast.AsyncFor) or statement not in loop.body:
            continue
        for after in loop.body[loop.body.index(statement) + 1 :]:
            names = {one.id for one in ast.walk(after) if isinstance(one, ast.Name)}
            if isinstance(after, ast.If) and isinstance(after.body[-1], ast.Continue) and not after.orelse:
                asked = {one.id for one in ast.walk(after.test) if isinstance(one, ast.Name)}
                return after.test if not names & made and asked else None
            if names & made:
                return None
    return None
