"""C++ names that fit on a line: what was called, without parameters and most arguments of templates."""

from __future__ import annotations

import re

_MOST = 200
_CLONE = re.compile(r"\s*\[clone [^\]]*\]")
_CALLS_IT = re.compile(
    r"(?:function_ref<>::callback_fn|_Function_handler<>::_M_invoke|std::__invoke(?:_impl|_r)?|_State_impl<>::_M_run"
    r"|std::_Bind<>::__call|TransparentFunctor<>::operator\(\))(?:<>)?$"
)
"""Functions that do nothing but call, or hold, the function object in the arguments of their templates."""
_LOCAL = re.compile(r"Z+N[rVK]*(?:S[0-9A-Z]*_|St)?(?=\d)")
"""Before the path of a function inside of which something else is, in a mangled name (a function object mostly)."""
_LAMBDA = ("::{lambda", "::'lambda")


def readable(name: str) -> str:
    """A C++ name without parameters, what it returns and the arguments of its templates, which fill screens.

    Which function's lambda a template was made for is kept, since all time of an element-wise operator stands in
    `callback_fn<>`: `at::parallel_for<at::native::mul_kernel::{lambda}>`, and the lambda alone for what only calls it.
    """
    name = _CLONE.sub("", name).replace("(anonymous namespace)", "{anonymous}")
    if name.startswith("_Z"):
        return _cut(_innermost_path(name) or name)
    text, arguments = _plain(name)
    text = _without_parameters(text)
    if "operator" not in text:
        text = text.rsplit(" ", 1)[-1]
    if owner := _owner_of_lambda(arguments):
        made_for = f"{owner}::{{lambda}}"
        if _CALLS_IT.search(text):
            text = made_for
        elif text.endswith("<>"):
            text = f"{text[:-1]}{made_for}>"
    return _cut(text or name)


def _cut(text: str) -> str:
    return text if len(text) <= _MOST else text[: _MOST - 1] + "…"


def _plain(name: str) -> tuple[str, list[str]]:
    """The name with `<>` for each list of template arguments, and these lists, without those of its parameters."""
    plain: list[str] = []
    arguments: list[str] = []
    depth, brackets, begin = 0, 0, 0
    for index, letter in enumerate(name):
        if letter == "<" and not name.endswith(("operator", "operator<"), 0, index):
            depth += 1
            if depth == 1:
                plain.append("<>")
                begin = index + 1
        elif letter == ">" and depth and name[index - 1] != "-":
            depth -= 1
            if depth == 0 and brackets == 0:
                arguments.append(name[begin:index])
        elif not depth:
            brackets += (letter == "(") - (letter == ")")
            plain.append(letter)
    return "".join(plain), arguments


def _owner_of_lambda(arguments: list[str]) -> str:
    """The function whose lambda stands innermost in these arguments of templates; empty where none does."""
    best, deepest = "", 0
    for text in arguments:
        begins = [0]  # of what stands at each depth of brackets
        for index, letter in enumerate(text):
            if letter in "<(":
                begins.append(index + 1)
            elif letter in ">)" and len(begins) > 1 and text[index - 1] != "-":
                begins.pop()
            elif text.startswith(", ", index):
                begins[-1] = index + 2
            elif len(begins) > deepest and text.startswith(_LAMBDA, index):
                best, deepest = text[begins[-1] : index], len(begins)
    return readable(best) if best else ""


def _innermost_path(mangled: str) -> str:
    """What can be read of a mangled name that the C++ library refuses: the path of the innermost function in which a
    lambda is, without what it abbreviates; empty where there is none."""
    for found in reversed(list(_LOCAL.finditer(mangled))):
        at, parts = found.end(), []
        while digits := re.match(r"\d+", mangled[at:]):
            start = at + digits.end()
            at = start + int(digits.group())
            parts.append(mangled[start:at])
        if parts and at <= len(mangled):
            path = "::".join("{anonymous}" if part.startswith("_GLOBAL__N_") else part for part in parts)
            return path + "::{lambda}" * ("Ul" in mangled[at:])
    return ""


def _without_parameters(text: str) -> str:
    """Up to the last list in brackets that is not followed by more of the name (`f(int)::{lambda()#1}::operator()`)."""
    depth, begin = 0, -1
    pieces: list[str] = []
    last = 0
    for index, letter in enumerate(text):
        if letter == "(":
            if depth == 0:
                begin = index
            depth += 1
        elif letter == ")" and depth:
            depth -= 1
            if depth == 0 and not text.endswith("operator", 0, begin):
                pieces.append(text[last:begin])
                last = index + 1
    rest = text[last:]
    return "".join(pieces) + (rest if rest.startswith(("::", "(", "#")) or not pieces else "")
