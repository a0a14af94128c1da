"""Draws compiled programs of XLA (HloModuleProto) in the layout of xla/service/hlo.proto."""

from __future__ import annotations

from dataclasses import dataclass

from leadline.trace.protobuf import bytes_field, packed_field, present_field, text_field


@dataclass(frozen=True)
class Operation:
    """`stack`: (file, function, line) from the outside to the leaf."""

    name: str
    opcode: str
    op_name: str = ""
    stack: tuple[tuple[str, str, int], ...] = ()
    elements: int = 16
    calls: str = ""
    """A computation."""
    operands: tuple[str, ...] = ()
    """Operations of the same computation that come before."""


def module(name: str, number: int, computations: dict[str, list[Operation]]) -> bytes:
    """A program; the first computation is its entry."""
    files: list[str] = []
    functions: list[str] = []
    locations: list[bytes] = []
    stacks: list[bytes] = []

    def row(held: list[str], value: str) -> int:
        if value not in held:
            held.append(value)
        return held.index(value) + 1

    def stack_row(stack: tuple[tuple[str, str, int], ...]) -> int:
        parent = 0
        for file, function, line in stack:
            locations.append(
                present_field(1, row(files, file)) + present_field(2, row(functions, function)) + present_field(3, line)
            )
            stacks.append(present_field(1, len(locations)) + present_field(2, parent))
            parent = len(stacks)
        return parent

    ids = {title: 100 + place for place, title in enumerate(computations)}
    made = text_field(1, name)
    number_of = 0
    numbers: dict[str, int] = {}
    for title, operations in computations.items():
        body = text_field(1, title)
        for operation in operations:
            number_of += 1
            numbers[operation.name] = number_of
            shape = present_field(2, 11) + packed_field(3, [operation.elements])
            metadata = text_field(2, operation.op_name) + present_field(15, stack_row(operation.stack))
            instruction = text_field(1, operation.name) + text_field(2, operation.opcode) + bytes_field(3, shape)
            instruction += bytes_field(7, metadata) + present_field(35, number_of)
            if operation.operands:
                instruction += packed_field(36, [numbers[one] for one in operation.operands])
            if operation.calls:
                instruction += packed_field(38, [ids[operation.calls]])
            body += bytes_field(2, instruction)
        made += bytes_field(3, body + present_field(5, ids[title]) + present_field(6, number_of))
    made += present_field(5, number) + present_field(6, 100)
    tables = b"".join(text_field(1, file) for file in files) + b"".join(text_field(2, text) for text in functions)
    tables += b"".join(bytes_field(3, location) for location in locations)
    tables += b"".join(bytes_field(4, stack) for stack in stacks)
    return made + bytes_field(17, tables)
