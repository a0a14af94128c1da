"""What to do about a loop of Python that calls operators: by what its text does."""

from __future__ import annotations

import ast

from leadline.analysis.sourcecode import Block

_AT_ONCE = "Stack the elements and call the operators once for all: no iteration needs the result of another one."
_GRADIENTS = (
    "Ask for all gradients in one backward pass: torch.autograd.grad(..., is_grads_batched=True) or torch.func.jacrev "
    "for the rows of a Jacobian, torch.func.vmap(torch.func.grad(loss)) for each sample of a batch."
)
_MICRO = "Take larger micro-batches, if memory allows: each iteration computes and goes backward on its own."
_OPERATOR = "Call the operator for it (tensor.sum(), torch.stack, ...): this reads the tensor element by element."
CELLS = ("aten::lstm_cell", "aten::gru_cell", "aten::rnn_tanh_cell", "aten::rnn_relu_cell")
OF_CELLS = (
    "Give the whole sequence to nn.LSTM, nn.GRU or nn.RNN in one call, with as many layers as the loop has cells: they "
    "compute what the loop does, and the products with the inputs for all time steps at once."
)
_IN_TURN = (
    "Take out of the loop what needs no result of the iteration before, and compute it for all iterations in one call "
    "(layers before the recurrent one, the output layer after it). Process several sequences or environments in one "
    "iteration. nn.RNN, nn.GRU and nn.LSTM process a whole sequence in one call; torch.compile reduces the calls of an "
    "iteration, which needs the result of the last one."
)


def instead_of_loop(block: Block, *, in_turn: bool) -> str:
    """What to do in place of the loop. `in_turn`: an iteration takes the result of the one before."""
    if _asks_for_gradients(block.node):
        return _MICRO if _computes_its_loss(block.node) else _GRADIENTS
    if in_turn:
        return _IN_TURN
    return _OPERATOR if block.kind.endswith("()") else _AT_ONCE


def _asks_for_gradients(loop: ast.AST) -> bool:
    """Whether the loop's own text runs a backward pass: `loss.backward()`, `torch.autograd.grad(...)`."""
    return any(
        isinstance(node, ast.Call)
        and (text := ast.unparse(node.func)).endswith((".backward", "autograd.grad"))
        and not text.startswith("self.")
        for node in ast.walk(loop)
    )


def _computes_its_loss(loop: ast.AST) -> bool:
    """Whether an iteration goes backward from what it computes itself: a micro-batch, not a row of a Jacobian."""
    made = {
        name.id
        for node in ast.walk(loop)
        if isinstance(node, ast.Assign) and any(isinstance(one, ast.Call) for one in ast.walk(node.value))
        for target in node.targets
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    }
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "backward"
        and any(isinstance(one, ast.Name) and one.id in made for one in ast.walk(node.func.value))
        for node in ast.walk(loop)
    )
