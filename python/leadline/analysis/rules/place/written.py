"""What the program's own source says of a place, at that very line: what it goes through, copies or throws away."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from leadline.analysis.calls_in_source import name_of, text_of
from leadline.analysis.case import Case
from leadline.analysis.rules.partly_used import is_of_several, only_asked_for
from leadline.analysis.rules.place.at import At, own_nodes
from leadline.analysis.rules.place.fact import Fact
from leadline.analysis.rules.sorted_for_few import read_of_sorted
from leadline.schema import FrameKind

_JOINS = frozenset(("cat", "concat", "concatenate", "append", "vstack", "hstack", "stack"))
_DRAWS = frozenset(("choice", "choices", "multinomial"))
_SMALLER = re.compile(
    r"^(Random|Center|Five|Ten)?(resize|resized|crop|thumbnail|downsample|subsample|draft|pool)", re.I
)
_OPENS = frozenset(
    (
        *("open", "imread", "read_image", "read_text", "read_bytes", "safe_open", "load_file", "File"),
        *("read_csv", "read_parquet", "read_feather", "read_pickle", "read_json", "read_excel"),
        *("loadtxt", "genfromtxt"),
    )
)
_LISTS = frozenset(("listdir", "scandir", "glob", "iglob", "rglob", "walk"))
_LOADS_OF = frozenset(("np", "numpy", "torch", "json", "pickle", "yaml", "joblib", "sf", "librosa", "torchaudio"))
_KNOWN_CALLS = {
    "deepcopy": "copies an object with all it holds",
    "iterrows": "makes a Series of each row",
    "itertuples": "goes through a table row by row",
    "to_dense": "makes a sparse matrix dense",
    "todense": "makes a sparse matrix dense",
    "toarray": "makes a sparse matrix dense",
    "to_datetime": "parses dates from text",
    "strptime": "parses dates from text",
    "one_hot": "makes one-hot rows",
    "loads": "parses text or a pickle",
    "sleep": "sleeps",
    "Pool": "starts worker processes",
    "ProcessPoolExecutor": "starts worker processes",
    "Popen": "starts a process",
    "check_output": "starts a process",
}
_TO_ARRAYS = (
    "Convert the columns to arrays once, before the loop (frame[columns].to_numpy(), torch.from_numpy), and use these."
)
_KNOWN_FUNCTIONS = {
    "NpzFile.__getitem__": (
        "reads all of an array from the .npz file, whatever part of it is used",
        "Read the arrays of the .npz file once, before the loop, or save each as .npy and open it with "
        'numpy.load(..., mmap_mode="r"), which reads only what is used.',
    ),
    "DataFrame.iterrows": ("makes a Series of each row", _TO_ARRAYS),
    "_LocationIndexer.__getitem__": (
        "makes a Series of one row of a table, or finds one value by its label",
        _TO_ARRAYS,
    ),
    "Series.__getitem__": ("finds values by their labels, and makes a Series of several", _TO_ARRAYS),
}
"""Functions of libraries whose documentation says what they go through, and what to do instead."""
_FINDS = frozenset(("flatnonzero", "nonzero", "argwhere", "where"))
_MATCHES = frozenset(("sub", "findall", "finditer", "match", "search", "split", "fullmatch"))
_EACH = frozenset(("apply", "map", "applymap", "transform"))
_KEYWORDS = {
    "retain_graph": "keeps the graph for another backward pass",
    "create_graph": "records the backward pass to go backward through it",
}
_GROUP = (
    "Group once, before the loop: a dict or groupby by what is compared, or sorted values with searchsorted. Then each "
    "look-up finds its rows without comparing all of them."
)
_ADD = "Write into an array that was made large enough, or keep parts in a list and join them once."
_DEQUE = "Use collections.deque, whose appendleft and popleft move nothing."
_SEARCHES = frozenset(("index", "remove"))


def written(case: Case, at: At) -> list[Fact]:
    """Nothing where the source cannot be read."""
    if at.statement is None:
        return []
    nodes = own_nodes(at.statement)
    found = [fact for look in _LOOKS for fact in look(at, nodes)]
    known = (one for name, one in _KNOWN_FUNCTIONS.items() if name in (at.what, *at.called))
    found += [Fact("does", words, 0.85, instead) for words, instead in known]
    if at.what.endswith("()"):
        found.append(Fact("does", f"reads a number by {at.what}, and waits until it is computed", 0.3))
    return [*found, *_partly_read(case, at), *_smaller_later(at)]


def _selects(at: At, nodes: list[ast.AST]) -> Iterator[Fact]:
    """`table[table["customer"] == one]`: all rows are compared to find some."""
    for node in nodes:
        if isinstance(node, ast.Subscript):
            compared = next((one for one in ast.walk(node.slice) if isinstance(one, ast.Compare)), None)
            if compared is not None and not isinstance(compared.ops[0], ast.In | ast.NotIn | ast.Is | ast.IsNot):
                yield Fact("reads", f"compares all of {text_of(compared.left)} to select from it", 0.65, _GROUP)
        elif isinstance(node, ast.Call) and name_of(node.func) in _FINDS and node.args:
            given = node.args[0]
            if isinstance(given, ast.Compare) and not isinstance(given.ops[0], ast.Is | ast.IsNot):
                yield Fact("reads", f"compares all of {text_of(given.left)} to select from it", 0.65, _GROUP)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _selects_by(node):
            yield Fact("reads", f"goes through all of {text_of(node.func.value)} to select from it", 0.6)


def _selects_by(call: ast.Call) -> bool:
    """`ids.isin(chosen)`, `table.query("price > 3")`."""
    name = name_of(call.func)
    return name == "isin" or (name == "query" and isinstance(next(iter(call.args), None), ast.Constant | ast.JoinedStr))


def _sets_part(at: At, nodes: list[ast.AST]) -> Iterator[Fact]:
    """`x.at[i].set(v)`, which is a copy of x outside of a compiled function."""
    for node in nodes if not at.compiled else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of = node.func.value
            if isinstance(of, ast.Subscript) and isinstance(of.value, ast.Attribute) and of.value.attr == "at":
                yield Fact("copies", f"copies all of {text_of(of.value.value)} to change a part of it", 0.75)


def _joins_itself(at: At, nodes: list[ast.AST]) -> Iterator[Fact]:
    """`self.queue = torch.cat([self.queue, new])`: what is kept is copied to add to it. A module that joins its input
    with another tensor keeps nothing."""
    assign = nodes[0]
    computes = getattr(at.function, "name", "") in ("forward", "__call__", "call")
    targets = assign.targets if isinstance(assign, ast.Assign) else []
    kept = {ast.unparse(one) for target in targets for one in _elements(target)}
    for node in nodes:
        if isinstance(node, ast.Call) and name_of(node.func) in _JOINS:
            for one in (inner for given in node.args[:2] for inner in _elements(given)):
                whose = one.value if isinstance(one, ast.Subscript) else one
                if ast.unparse(whose) in kept and not (computes and isinstance(whose, ast.Name)):
                    yield Fact("copies", f"copies all of {text_of(whose)} to add to it", 0.75, _ADD)


def _elements(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple | ast.List) else [node]


def _draws(at: At, nodes: list[ast.AST]) -> Iterator[Fact]:
    """`np.random.choice(n, k, p=p)`: a draw goes through all weights. Of torch's draw it tells something where the draw
    takes the time, not the calling of operators on a few weights."""
    for node in nodes:
        if isinstance(node, ast.Call) and name_of(node.func) in _DRAWS:
            weights = next((one.value for one in node.keywords if one.arg in ("p", "weights")), None)
            if weights is None and at.what == "aten::multinomial" and name_of(node.func) == "multinomial" and node.args:
                weights = node.args[0]
            if weights is not None:
                yield Fact("reads", f"goes through all of {text_of(weights)} to draw from it", 0.65)


def _goes_through(at: At, nodes: list[ast.AST]) -> Iterator[Fact]:
    """Arithmetic on all that an object has stored so far: `self.priority[:self.size] ** self.alpha`."""
    for node in nodes if not at.operator else ():
        sides = (
            [node.left, node.right]
            if isinstance(node, ast.BinOp)
            else [node.func.value]
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            else []
        )
        for side in sides:
            if isinstance(side, ast.Subscript) and isinstance(side.slice, ast.Slice) and _is_kept(side.value):
                yield Fact("reads", f"computes on all of {text_of(side)}", 0.6)


def _is_kept(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _calls(at: At, nodes: list[ast.AST]) -> Iterator[Fact]:
    """Calls whose cost their name tells."""
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        name = name_of(node.func)
        whose = node.func.value if isinstance(node.func, ast.Attribute) else None
        if _KNOWN_CALLS.get(name):
            yield Fact("does", _KNOWN_CALLS[name], 0.6)
        elif name in _OPENS or (name == "load" and whose is not None and name_of(whose) in _LOADS_OF):
            yield Fact("does", f"reads a file, by {text_of(node.func)}", 0.5)
        elif name in _LISTS:
            yield Fact("does", f"lists the files of a folder, by {text_of(node.func)}", 0.6)
        elif whose is not None and name_of(whose) == "re" and name in _MATCHES and node.args:
            yield Fact("does", f"matches the regular expression {text_of(node.args[0])}", 0.5)
        elif name in _EACH and node.args and isinstance(node.args[0], ast.Lambda):
            yield Fact("does", f"calls Python for each element of {text_of(whose or node.func)}", 0.6)
        elif name in ("jit", "pmap") and whose is not None and name_of(whose) == "jax":
            yield Fact("does", "makes a new compiled function", 0.6)
        elif name in _SEARCHES and whose is not None and len(node.args) == 1 and not at.operator:
            if not _is_module(at, whose):
                yield Fact("reads", f"searches {text_of(whose)} from its start", 0.5)
        elif name == "insert" and node.args and ast.unparse(node.args[0]) == "0":
            yield Fact("copies", f"moves all of {text_of(whose or node.func)} to put one in front", 0.5, _DEQUE)
        elif name == "pop" and node.args and ast.unparse(node.args[0]) == "0":
            yield Fact("copies", f"moves all of {text_of(whose or node.func)} to take the first", 0.5, _DEQUE)
        elif name == "sorted" and node.args and not at.operator:
            yield Fact("reads", f"sorts all of {text_of(node.args[0])}", 0.5)


def _is_module(at: At, node: ast.expr) -> bool:
    """`os` of `os.remove(path)`."""
    tree = at.source.tree if at.source is not None else None
    imports = (one for one in ast.walk(tree) if isinstance(one, ast.Import)) if tree is not None else ()
    names = {(one.asname or one.name).partition(".")[0] for several in imports for one in several.names}
    return isinstance(node, ast.Name) and node.id in names


def _asks_for(_: At, nodes: list[ast.AST]) -> Iterator[Fact]:
    """Arguments that make a call do more: `retain_graph=True`."""
    for node in nodes:
        is_asked = isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant) and node.value.value is True
        if isinstance(node, ast.keyword) and is_asked and node.arg in _KEYWORDS:
            yield Fact("does", _KEYWORDS[node.arg], 0.55)


def _in_loop(at: At, _: list[ast.AST]) -> Iterator[Fact]:
    """Python that goes through elements one by one; of operators the number of calls says so."""
    if at.loops and not at.operator:
        inner = at.loops[-1]
        over = inner.node
        if isinstance(over, ast.For | ast.AsyncFor):
            yield Fact("loop", f"runs for each of {text_of(over.iter)}, in the loop at line {inner.first}", 0.55)
        elif inner.kind == "comprehension":
            of = over.generators[-1].iter if hasattr(over, "generators") else None
            if isinstance(of, ast.expr):
                yield Fact("loop", f"runs for each of {text_of(of)}, in a comprehension", 0.5)


def _columns(at: At, nodes: list[ast.AST]) -> Iterator[Fact]:
    """`counts[:, idx]`: of each row a few values that are far from each other in memory."""
    for node in nodes if at.what in ("aten::index", "") else ():
        index = node.slice if isinstance(node, ast.Subscript) else None
        if isinstance(index, ast.Tuple) and len(index.elts) == 2 and isinstance(index.elts[1], ast.Name):
            first = index.elts[0]
            if isinstance(first, ast.Slice) and first.lower is first.upper is first.step is None:
                assert isinstance(node, ast.Subscript)
                yield Fact("reads", f"picks columns of {text_of(node.value)} one by one", 0.55)


_LOOKS: tuple[Callable[[At, list[ast.AST]], Iterator[Fact]], ...] = (
    _selects,
    _sets_part,
    _joins_itself,
    _draws,
    _goes_through,
    _calls,
    _asks_for,
    _in_loop,
    _columns,
)


def _partly_read(case: Case, at: At) -> list[Fact]:
    """Results of which the function reads a part, or nothing."""
    function = at.function
    if function is None:
        return []
    asked = read_of_sorted(function, at.line)
    if not asked and not _inside_modules(case, at):
        only = only_asked_for(function, at.line)
        asked = only if is_of_several(case, at.file, function, only) else ""
    if asked:
        return [Fact("read", f"makes a result of which only {asked} is read", 0.8)]
    unread = _never_read(function, at.statement)
    return [Fact("read", f"makes {unread}, which nothing reads", 0.7)] if unread else []


def _inside_modules(case: Case, at: At) -> bool:
    """Whether it is an operator inside of a stack of modules, which makes no result of the line but what other modules
    read."""
    path, user = case.tree.path_rows(at.row), int(case.analysis.scopes.user[at.row])
    modules = [row for row in path if row > user and case.tree.kinds[row] == int(FrameKind.MODULE)]
    return at.operator and len(modules) > 1


def _never_read(function: ast.AST, statement: ast.stmt | None) -> str:
    """The name that a function's statement assigns and the function never reads; empty in a module's body."""
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or not isinstance(statement, ast.Assign):
        return ""
    targets = statement.targets[0] if len(statement.targets) == 1 else None
    if not isinstance(targets, ast.Name) or not isinstance(statement.value, ast.Call | ast.BinOp):
        return ""
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == targets.id]
    outside = any(
        isinstance(node, ast.Global | ast.Nonlocal) and targets.id in node.names for node in ast.walk(function)
    )
    read = any(isinstance(node.ctx, ast.Load | ast.Del) for node in names)
    calls_locals = any(
        isinstance(node, ast.Name) and node.id in ("locals", "exec", "eval") for node in ast.walk(function)
    )
    return "" if read or outside or calls_locals else targets.id


def _smaller_later(at: At) -> list[Fact]:
    """What works on all of something that a later step makes smaller: a blur before a resize."""
    if at.source is None or at.source.tree is None:
        return []
    names = {one.rpartition(".")[2] for one in at.called} | {one.partition(".")[0] for one in at.called}
    function = at.function
    if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        names.add(function.name)
    later = _in_chain(at.source.tree, names) or (_in_block(function, at) if function is not None else "")
    return [Fact("order", f"runs before {later}, so on the original size", 0.85)] if later else []


def _in_chain(tree: ast.AST, names: set[str]) -> str:
    """`resize` of `Compose([blur, jitter, resize])` for `blur`: a list of steps, in their order."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.List | ast.Tuple):
            continue
        steps = [name_of(one.func) if isinstance(one, ast.Call) else name_of(one) for one in node.elts]
        place = next((at for at, one in enumerate(steps) if one in names and not _SMALLER.match(one)), -1)
        later = next((one for one in steps[place + 1 :] if _SMALLER.match(one)), "") if place >= 0 else ""
        if later:
            return later
    return ""


def _in_block(function: ast.AST, at: At) -> str:
    """`image.resize` where a later statement of the function makes smaller what this one assigns."""
    targets = at.statement.targets if isinstance(at.statement, ast.Assign) else []
    names = {one.id for one in targets if isinstance(one, ast.Name)}
    if not names or at.statement is None:
        return ""
    if any(_smaller_call(node, None) for node in own_nodes(at.statement)):
        return ""
    for node in ast.walk(function):
        if not isinstance(node, ast.Call) or node.lineno <= (at.statement.end_lineno or at.line):
            continue
        if called := _smaller_call(node, names):
            return f"{called} (line {node.lineno})"
    return ""


def _smaller_call(node: ast.AST, names: set[str] | None) -> str:
    if not isinstance(node, ast.Call) or not _SMALLER.match(name_of(node.func)):
        return ""
    given = [*node.args[:1], *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
    if names is not None and not any(isinstance(one, ast.Name) and one.id in names for one in given):
        return ""
    return name_of(node.func)
