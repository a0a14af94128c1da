"""What a statement assigns the result of a call to, read from the bytecode behind the call.

`model = GPT(config).to(device)` stands at the call of GPT while GPT's constructor runs; the instructions that follow
say that the result goes to `model`. Nothing is run, and no source file is needed.
"""

from __future__ import annotations

import dis
from dataclasses import dataclass
from itertools import dropwhile, islice, pairwise
from types import CodeType

_MOVES = ("to", "cuda", "cpu", "xpu", "half", "float", "double", "bfloat16", "type", "to_empty")
_SETTINGS = ("eval", "train", "requires_grad_", "apply", "share_memory")
_RETURN_SELF = frozenset((*_MOVES, *_SETTINGS))
"""Methods of nn.Module that return the module itself, so that the name behind them is the module's."""
_STORES = ("STORE_NAME", "STORE_GLOBAL", "STORE_DEREF", "STORE_FAST")
_LOADS = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_FAST")
_LOCAL_LOADS = ("LOAD_FAST", "LOAD_DEREF")
_NO_MEANING = frozenset(("CACHE", "EXTENDED_ARG", "NOP", "RESUME", "COPY", "DUP_TOP"))
"""COPY and DUP_TOP begin `a = b = Model()`: the first name will do."""
_LOOKAHEAD = 48


@dataclass(frozen=True)
class Destination:
    """Where the result of a call goes."""

    name: str
    """Variable or attribute; empty when it goes nowhere that has a name."""
    returned: bool
    """The function returns it, so its caller may give it a name, a better one where the function is a library's."""


NOWHERE = Destination("", False)


def assigned_name(code: CodeType, call_offset: int) -> Destination:
    """Where the result of the call at `call_offset` (a frame's `f_lasti`) goes.

    Follows the one value on the stack; `above` counts what lies on top of it. The value may be stored, be returned, or
    have a method called that returns it; as an argument of another call it is nobody's name.
    """
    # Not the next index: while a Python function is called, f_lasti may stand in the cache words behind the call.
    behind = islice(dropwhile(lambda item: item.offset <= call_offset, dis.get_instructions(code)), _LOOKAHEAD)
    instructions = [item for item in behind if item.opname not in _NO_MEANING]
    above = 0
    for index, instruction in enumerate(instructions):
        operation = instruction.opname
        if above == 0:
            if operation.startswith(_STORES):
                argument = instruction.argval
                return Destination(str(argument[0] if isinstance(argument, tuple) else argument), False)
            if operation == "RETURN_VALUE":
                return Destination("", True)
            if operation.startswith(_LOADS):
                return _stored_attribute(instructions[index + 1 :])
            if operation not in ("LOAD_METHOD", "LOAD_ATTR") or instruction.argval not in _RETURN_SELF:
                return NOWHERE
        above += dis.stack_effect(instruction.opcode, instruction.arg, jump=False)
        if above < 0:
            return NOWHERE
    return NOWHERE


def is_returned(code: CodeType, name: str) -> bool:
    """Whether a statement of the function is `return NAME`, of a local variable."""
    instructions = [item for item in dis.get_instructions(code) if item.opname not in _NO_MEANING]
    return any(
        later.opname == "RETURN_VALUE" and first.opname.startswith(_LOCAL_LOADS) and first.argval == name
        for first, later in pairwise(instructions)
    )


def _stored_attribute(following: list[dis.Instruction]) -> Destination:
    """`owner.name = Model()` loads the owner behind the call and then stores; `f(Model(), x)` loads and does not."""
    if following and following[0].opname == "STORE_ATTR":
        return Destination(str(following[0].argval), False)
    return NOWHERE
