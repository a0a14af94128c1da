"""What the name of an operation in a compiled program says: transforms, scopes, primitive.

JAX writes the way an operation came to be into its name, such as
`jit(train_step)/transpose(jvp(MLP))/Dense_0/dot_general`: function transforms around scopes (`jax.named_scope`, which
Flax, Haiku and Equinox open for their modules), and the primitive at the end. Pure functions of text.
"""

from __future__ import annotations

import re

from leadline._dataclass import dataclass

_CALLS = frozenset(
    ["jit", "pjit", "xla_call", "pmap", "core_call", "closed_call", "custom_jvp_call", "custom_vjp_call"]
)
"""Calls of a function: they tell its name, and change nothing."""
_CONTROL = {
    "while": ("body", "body_pred", "cond"),
    "cond": ("branch",),
    "closed_call": (),
    "eval_jaxpr": (),
    "core_call": (),
    "program_order": (),
    "xla_metadata_call": (),
    "custom_vmap_call": (),
    "custom_jvp_call_jaxpr": (),
    "custom_vjp_call_jaxpr": (),
    "checkpoint": ("rematted_computation",),
    "remat": ("rematted_computation",),
    "rematted_computation": (),
    "shard_map": (),
    "custom_jvp_call": (),
    "custom_vjp_call": (),
    "pallas_call": (),
}
"""Parts that control flow and calls write, and what may stand right after them."""
_SILENT = frozenset(
    [
        *("closed_call", "eval_jaxpr", "core_call", "program_order", "xla_metadata_call", "custom_vmap_call"),
        *("custom_jvp_call", "custom_jvp_call_jaxpr", "custom_vjp_call", "custom_vjp_call_jaxpr"),
    ]
)
"""Ways in which JAX calls what it has traced, of which nobody needs to know."""
_SCAN = (("while", "body", "closed_call"), ("while", "body", "eval_jaxpr"))
"""How what a scan repeats is written, up to 0.10 and since; the slices of its arrays around that are a loop's like any
other's."""
_WRAPPED = re.compile(r"^(?P<transform>[A-Za-z_][\w.]*)\((?P<inner>.*)\)$")
_BACKWARD = "transpose"


@dataclass(frozen=True)
class Scope:
    """`transforms`: from the outside, without calls and without what makes a gradient; `scopes`: named ones, outermost
    first; `primitive`: the last part; `backward`: part of a gradient, run after the forward pass; `differentiated`:
    inside one of the two passes of a gradient."""

    transforms: tuple[str, ...]
    scopes: tuple[str, ...]
    primitive: str
    backward: bool
    differentiated: bool


def parse(op_name: str) -> Scope:
    """The parts of a name. Names that XLA has joined, as `a;b` or `f/(a:b)`, are told by the first."""
    parts = split(op_name.partition(";")[0])
    if parts and parts[-1].startswith("(") and parts[-1].endswith(")"):
        parts[-1:] = split((split(parts[-1][1:-1], ":") or [""])[0])
    transforms: list[str] = []
    scopes: list[str] = []
    backward = differentiated = False
    for part in parts[:-1]:
        inner = part
        called = False
        while (match := _WRAPPED.match(inner)) is not None:
            transform, inner = match["transform"], match["inner"]
            backward = backward or transform == _BACKWARD
            differentiated = differentiated or transform in ("jvp", _BACKWARD)
            called = called or transform in _CALLS
            if transform not in _CALLS and transform not in ("jvp", _BACKWARD) and transform not in transforms:
                transforms.append(transform)
        if not called:
            scopes.extend(split(inner))
    named = []
    follows: tuple[str, ...] = ()
    for position, scope in enumerate(scopes):
        if scope in _CONTROL:
            name = "scan" if tuple(scopes[position : position + 3]) in _SCAN else scope
            if scope not in _SILENT and name not in transforms:
                transforms.append(name)
        elif not any(scope == word or scope.startswith(f"{word}_") for word in follows):
            named.append(scope)
        follows = _CONTROL.get(scope, ())
    return Scope(tuple(transforms), tuple(named), parts[-1] if parts else "", backward, differentiated)


def split(text: str, at: str = "/") -> list[str]:
    """The parts between slashes, or another sign, that stand outside of brackets; brackets that do not close end at the
    end."""
    parts = []
    depth = start = 0
    for position, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth = max(depth - 1, 0)
        elif character == at and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return [part for part in parts if part]
