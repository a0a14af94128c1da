"""How a name is shown in little room: signatures, common namespaces and the parent's prefix go first, then the middle;
never the end, where names differ, and never a location. `ui/model/names.ts` is the same; both are held to
`tests/ui/rules.json`. The whole name stands beside it wherever there is room (a tooltip, JSON, a copy)."""

from __future__ import annotations

import re
from functools import lru_cache

_ENGINE = "autograd::engine::evaluate_function: "
_COMMON = re.compile(
    r"^(?:void |(?:unsigned )?(?:int|float|bool) )?(?:aten::|\(anonymous namespace\)::|at::native::|"
    r"c10d::|torch::|pytorch_flash::|cutlass::|cudnn::|cub::|thrust::)*"
)
_NAMESPACES = re.compile(r"^(?:[A-Za-z_]\w*::|\(anonymous namespace\)::)+")
_TEMPLATE_KEPT = re.compile(r"^(?:Kernel2?|kernel|device_kernel|kernel_agent)$")
_CODE = re.compile(r"<|(?<=\S)\(")


@lru_cache(maxsize=65536)
def bare(name: str) -> str:
    """A name without return type, common namespaces, template arguments and signature: `mm` of `aten::mm`,
    `vectorized_elementwise_kernel` of `void at::native::vectorized_elementwise_kernel<4, …>(int, …)`. Of templates that
    are only a wrapper the argument stays, which is what differs. A Python name stays as it is."""
    name = name.removeprefix(_ENGINE)
    if name.startswith("## ") and name.endswith(" ##"):  # a mark by hand around the name of a part of the step
        return name[3:-3] or name
    plain = _COMMON.sub("", name)
    if not plain or plain.startswith("<"):
        return name
    found = _CODE.search(plain)
    if found is None or not ("::" in name or name.startswith("void ") or plain.endswith((")", ">"))):
        return plain
    head = plain[: found.start()].rstrip()
    if head.startswith("operator") or not head:
        return plain
    if found.group() == "<" and _TEMPLATE_KEPT.match(head.rsplit("::", 1)[-1]):
        inner = _first_argument(plain[found.end() :])
        inner = _NAMESPACES.sub("", inner)
        inner = inner.split("<", 1)[0].strip()
        return inner or head
    return head


def _first_argument(text: str) -> str:
    """The first argument of a template of which `text` begins after the `<`."""
    depth = 0
    for at, letter in enumerate(text):
        if letter in "<([":
            depth += 1
        elif letter in ">)]":
            if depth == 0:
                return text[:at]
            depth -= 1
        elif letter == "," and depth == 0:
            return text[:at]
    return text


def below(name: str, parent: str) -> str:
    """A module's name below its parent's box: `…attn` of `model.blocks.*.attn` below `model.blocks.*`."""
    if parent and name.startswith(parent) and name[len(parent) : len(parent) + 1] == ".":
        return "…" + name[len(parent) + 1 :]
    return name


def cut(text: str, most: int) -> str:
    """`text` in at most `most` characters: the middle goes, two thirds of what stays are the end."""
    if len(text) <= most:
        return text
    if most < 3:
        return text[len(text) - max(most, 0) :]
    begin = (most - 1) // 3
    return f"{text[:begin]}…{text[len(text) - (most - 1 - begin) :]}"


def distinct_parts(modules: list[str]) -> list[str]:
    """Names without the part that they share, of which one that is no longer keeps its last word: `h.*.attn` of
    `model.transformer.h.*.attn`."""
    split = [one.split(".") for one in modules if one]
    shared = 0
    while True:
        longer = [one for one in split if len(one) > shared + 1]
        if len(longer) < 2 or any(
            one[shared : shared + 1] not in ([], longer[0][shared : shared + 1]) for one in split
        ):
            break
        shared += 1
    return [".".join((words := one.split("."))[min(shared, len(words) - 1) :]) for one in modules]


def whole_parts(text: str, most: int, between: str) -> str:
    """As many whole parts as have room, then a sign that there are more: no part is cut."""
    parts = text.split(between)
    while len(parts) > 1 and len(text) > most:
        parts.pop()
        text = between.join((*parts, "…"))
    return text
