"""Structure of the user's source around a line: the function, loops, `with` blocks and comprehensions it stands in.

Read from the file where it still is what ran: a file written after the run began says nothing about the lines measured,
and is named in `changed`. Nothing is executed or imported; a file that does not parse has no structure.
"""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Iterator
from functools import cached_property

from leadline._dataclass import dataclass
from leadline.analysis.installed import Installed
from leadline.sources import readable_source

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Block:
    """A construct around a line. `kind`: "function", "loop", "with" or "comprehension"."""

    kind: str
    first: int
    last: int
    node: ast.AST


@dataclass(frozen=True)
class Source:
    """A file as text and tree; `tree` is None where it does not parse."""

    lines: tuple[str, ...]
    tree: ast.Module | None
    sha256: str

    def text(self, line: int) -> str:
        """The line without its indent; empty where there is none."""
        return self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""

    def around(self, line: int) -> list[Block]:
        """What the line stands in, the outermost first."""
        if line not in self._blocks:
            self._blocks[line] = [] if self.tree is None else list(_around(self.tree, line))
        return self._blocks[line]

    @cached_property
    def _blocks(self) -> dict[int, list[Block]]:
        """By line: many rules ask for the same ones."""
        return {}

    def loops(self, line: int) -> list[Block]:
        """Loops and comprehensions around the line inside its own function, the outermost first."""
        found: list[Block] = []
        for block in self.around(line):
            if block.kind == "function" and block.first < line:
                found.clear()
            elif block.kind == "comprehension" or (block.kind == "loop" and block.first < line):  # not its own head
                found.append(block)
        return found

    def blocks(self, line: int) -> list[Block]:
        """Loops around the line, those included whose own head it is."""
        return [block for block in self.around(line) if block.kind in ("loop", "comprehension")]

    def now_and_then(self, line: int) -> range:
        """Lines of the outermost branch around this one that is taken every n-th time (`if step % 100 == 0:`), inside
        its own function; empty where there is none."""
        function = self.function(line)
        if function is None:
            return range(0)
        if function not in self._rare:
            self._rare[function] = _every_nth(function)
        return next((body for body in self._rare[function] if line in body), range(0))

    def every_nth(self, line: int) -> int:
        """Every how many times the outermost branch around the line is taken, where the source has the number
        (`if step % 100 == 0:`); 0 where it does not say."""
        branch = self.now_and_then(line)
        for node in ast.walk(self.function(line) or ast.Module([], [])) if branch else ():
            if isinstance(node, ast.If) and node.body[0].lineno == branch.start:
                test = node.test.left if isinstance(node.test, ast.Compare) else node.test
                number = test.right if isinstance(test, ast.BinOp) and isinstance(test.op, ast.Mod) else None
                return number.value if isinstance(number, ast.Constant) and isinstance(number.value, int) else 0
        return 0

    @cached_property
    def _rare(self) -> dict[ast.AST, list[range]]:
        """By function: `now_and_then` is asked for many lines of each."""
        return {}

    def function(self, line: int) -> ast.AST | None:
        """The innermost function around the line, or the module."""
        inner = [block.node for block in self.around(line) if block.kind == "function"]
        return inner[-1] if inner else self.tree


def _every_nth(function: ast.AST) -> list[range]:
    """Lines of branches that are taken every n-th time, the outermost first."""
    return [
        range(node.body[0].lineno, (node.body[-1].end_lineno or 0) + 1)
        for node in ast.walk(function)
        if isinstance(node, ast.If) and any(isinstance(one, ast.Mod) for one in ast.walk(node.test))
    ]


class Sources:
    """Files of one profile, each read once. `cwd`: where the program ran; `ended_ns`: CLOCK_REALTIME of its end."""

    def __init__(self, cwd: str, ended_ns: int, hashes: dict[str, str] | None = None) -> None:
        self._cwd = cwd
        self._ended_ns = ended_ns
        self._hashes = hashes or {}
        self._known: dict[str, Source | None] = {}
        self._installed = Installed()
        self.changed: set[str] = set()

    def of(self, file: str) -> Source | None:
        """The source of `file`, or None where it cannot be read or is no longer what ran."""
        if file not in self._known:
            self._known[file] = self._read(file)
        return self._known[file]

    def installed(self, file: str) -> str:
        """The part of the path that names library code, where a package manager installed the file outside of
        site-packages; else empty."""
        return self._installed.path(file)

    def context(self, file: str, line: int) -> str:
        """`in the loop at line 41`, `in a comprehension`; empty at top level and where nothing is known."""
        source = self.of(file)
        loops = source.loops(line) if source else []
        if not loops:
            return ""
        inner = loops[-1]
        what = "in a comprehension" if inner.kind == "comprehension" else f"in the loop at line {inner.first}"
        what += f", once per {element}" if (element := _element(inner.node)) else ""
        outer = len(loops) - 1
        return what + (f", {outer + 1} loops deep" if outer else "")

    def _read(self, file: str) -> Source | None:
        found = readable_source(file, self._cwd, self._hashes)
        if found is None:
            return None
        if found.changed or (not found.known and 0 < self._ended_ns < found.changed_ns):
            self.changed.add(file)
            return None
        text = found.data.decode("utf-8", "replace")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the program's own invalid escapes are not our user's business here
                tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            tree = None
        return Source(tuple(text.splitlines()), tree, found.sha256)


def short_name(file: str, cwd: str) -> str:
    """The file relative to where the program ran, where it lies below; else as it is."""
    folder = cwd.rstrip("/") + "/" if cwd else ""
    return os.path.normpath(file[len(folder) :]) if folder and file.startswith(folder) else file


def _element(loop: ast.AST) -> str:
    """What a loop goes through, in its own words where it has one: `for sample in batch` is once per sample."""
    if isinstance(loop, _COMPREHENSIONS):
        target, over = loop.generators[-1].target, loop.generators[-1].iter
    elif isinstance(loop, ast.For | ast.AsyncFor):
        target, over = loop.target, loop.iter
    else:
        return ""
    name = over.func.id if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) else ""
    if name == "range":
        return "iteration"
    if name == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        target = target.elts[1]
    return target.id if isinstance(target, ast.Name) and len(target.id) > 2 else "element"


def _around(tree: ast.AST, line: int) -> Iterator[Block]:
    """By descending into the child that spans the line: nothing is visited that does not stand around it."""
    at: ast.AST = tree
    while True:
        inside = [child for child in _statements(at) if child.lineno <= line <= (child.end_lineno or child.lineno)]
        if not inside:
            return
        at = inside[-1]
        kind = _kind(at)
        if kind:
            yield Block(kind, at.lineno, at.end_lineno or at.lineno, at)


def _statements(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Nearest nodes below that have a line; those between (arguments, handlers, cases) are passed through."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr | ast.stmt):
            yield child
        else:
            yield from _statements(child)


def _kind(node: ast.AST) -> str:
    if isinstance(node, _LOOPS):
        return "loop"
    if isinstance(node, _COMPREHENSIONS):
        return "comprehension"
    if isinstance(node, _FUNCTIONS):
        return "function"
    return "with" if isinstance(node, ast.With | ast.AsyncWith) else ""


def carries_state(loop: ast.AST) -> bool:
    """Whether one turn of the loop needs what the last one computed: a name that is read before it is written. Sums
    (`total += ...`) and extremes that the loop reads nowhere else do not count, since they can be done at once."""
    if isinstance(loop, _COMPREHENSIONS) or not isinstance(loop, _LOOPS):
        return False
    written: set[str] = set()
    early: set[str] = set()
    for statement in loop.body:
        stored, read = _names(statement, ast.Store), _names(statement, ast.Load)
        if isinstance(statement, ast.AugAssign):
            read |= stored
        if _only_adds(statement, loop):
            continue
        early |= read - written
        written |= stored
    return bool((early & written) - _extremes(loop)) or _asks_an_object(loop)


def inputs_are_known(loop: ast.AST) -> bool:
    """Whether all recurrences of a loop, `h = cell(x[:, t], h)`, take inputs that no earlier turn has made; False where
    it has none."""
    if not isinstance(loop, _LOOPS) or isinstance(loop, _COMPREHENSIONS):
        return False
    later = [_names(statement, ast.Store) for statement in loop.body]
    found = False
    for at, statement in enumerate(loop.body):
        value = statement.value if isinstance(statement, ast.Assign) else None
        if not isinstance(value, ast.Call) or len(value.args) < 2:
            continue
        state = {name for one in value.args[1:] for name in _names(one, ast.Load)}
        if not state & later[at]:
            continue
        found = True
        written = set().union(*later[:at])
        if (_names(value.args[0], ast.Load) - written) & set().union(*later[at:]):
            return False
    return found


def _extremes(loop: ast.For | ast.AsyncFor | ast.While) -> set[str]:
    """Names of running extremes: `best = max(best, d)`, `if d > best: best = d`, and nothing else reads them."""
    reads: dict[str, int] = {}
    for node in ast.walk(loop):
        if isinstance(node, ast.If) and all(isinstance(one, ast.Assign) for one in node.body):
            stored = {name for one in node.body for name in _names(one, ast.Store)}
            made = {name for one in node.body if isinstance(one, ast.Assign) for name in _names(one.value, ast.Load)}
            compared = [one for test in ast.walk(node.test) if isinstance(test, ast.Compare) for one in ast.walk(test)]
            for name in [one.id for one in compared if isinstance(one, ast.Name) and one.id in stored - made]:
                reads[name] = reads.get(name, 0) + 1
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            given = {one.id for one in node.value.args if isinstance(one, ast.Name)}
            if ast.unparse(node.value.func).rpartition(".")[2] in _EXTREMES:
                for name in given & _names(node, ast.Store):
                    reads[name] = reads.get(name, 0) + 1
    loads = [one.id for one in ast.walk(loop) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    return {name for name, number in reads.items() if loads.count(name) == number}


_EXTREMES = frozenset(("max", "min", "maximum", "minimum", "fmax", "fmin"))
_READS = frozenset(("item", "tolist", "numpy", "int", "float"))
_KEEPS = frozenset(
    ("append", "add", "extend", "insert", "write", "put", "update", "log", "info", "debug", "set_postfix")
)


def _asks_an_object(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Whether a value that was read off a tensor goes into a method of an object of which another method is called as
    well: an environment that takes an action and is then asked for what it looks like."""
    read: set[str] = set()
    methods: dict[str, set[str]] = {}
    given: dict[str, set[str]] = {}
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign) and _reads(node.value, read):
            read |= {one.id for one in node.targets if isinstance(one, ast.Name)}
    for node in ast.walk(loop):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr not in _KEEPS:
            whose = ast.unparse(node.func.value)
            methods.setdefault(whose, set()).add(node.func.attr)
            if any(_reads(one, read) for one in node.args):
                given.setdefault(whose, set()).add(node.func.attr)
    return any(methods[whose] - names for whose, names in given.items())


def _reads(value: ast.expr, read: set[str]) -> bool:
    for node in ast.walk(value):
        if isinstance(node, ast.Name) and node.id in read:
            return True
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in _READS:
                return True
    return False


def _only_adds(statement: ast.stmt, loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """`total += ...` or `total = total + ...`, where nothing that each turn computes reads `total`, as in
    `y += h * f(y)`. What is printed or kept of it now and then does not count."""
    if isinstance(statement, ast.AugAssign):
        sums, own = _names(statement, ast.Store), 0
    elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp):
        sides = {one.id for one in (statement.value.left, statement.value.right) if isinstance(one, ast.Name)}
        sums, own = {one.id for one in statement.targets if isinstance(one, ast.Name)} & sides, 1
        sums = sums if isinstance(statement.value.op, ast.Add) else set()
    else:
        return False
    assigned = [
        one.value for one in loop.body if isinstance(one, ast.Assign | ast.AnnAssign | ast.AugAssign) and one.value
    ]
    reads = [one.id for value in assigned for one in ast.walk(value) if isinstance(one, ast.Name)]
    return bool(sums) and all(reads.count(name) == own for name in sums)


def _names(statement: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {one.id for one in ast.walk(statement) if isinstance(one, ast.Name) and isinstance(one.ctx, context)}
