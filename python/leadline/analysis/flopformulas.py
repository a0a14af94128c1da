"""Operations of one call of an operator from the shapes and arguments that were measured: a formula each, as data.

Two per multiplication and addition, as `torch.utils.flop_counter` counts them. A formula gives a number, or two where
the shapes bound it only: sequences packed into one have their lengths in a tensor, which nobody reads while it may
still be on its way to a device; the shapes tell how many sequences there are, how many rows in all, and how long the
longest is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from leadline.hardware.roofline import convolution_output, convolution_work, work_of

Shape = Sequence[int]
Bounds = tuple[float, float]
"""The least and the most that it can be."""
Formula = Callable[[list[Shape], list[Any]], float | Bounds]


def _by_shapes(name: str) -> Formula:
    def formula(shapes: list[Shape], arguments: list[Any]) -> float:
        work = work_of(name, shapes)
        return 0.0 if work is None else work.flops

    return formula


def _packed_linear(shapes: list[Shape], arguments: list[Any]) -> float:
    """The weight stands there twice: packed, which has no shape, and as it was."""
    return 2.0 * math.prod(shapes[0]) * shapes[2][0]


def _grouped(shapes: list[Shape], arguments: list[Any]) -> float:
    """Rows of the first belong to one group each: (rows, k) by (groups, k, n); every other form multiplies the same
    sizes once."""
    left, right = shapes[0], shapes[1]
    if len(left) == 3 and len(right) == 3:
        return 2.0 * math.prod(left) * right[2]
    return 2.0 * left[-2] * left[-1] * right[-1]


def _convolution(shapes: list[Shape], arguments: list[Any]) -> float:
    image, weight = shapes[0], shapes[1]
    if arguments[6]:  # transposed: every input place is multiplied with the whole filter
        return 2.0 * image[0] * math.prod(image[2:]) * math.prod(weight)
    return convolution_work(
        image, weight, convolution_output(image, weight, arguments[3], arguments[4], arguments[5])
    ).flops


def _convolution_backward(shapes: list[Shape], arguments: list[Any]) -> float:
    gradient, image, weight = shapes[0], shapes[1], shapes[2]
    wanted = arguments[10]
    places = image if arguments[7] else gradient
    return 2.0 * places[0] * math.prod(places[2:]) * math.prod(weight) * (bool(wanted[0]) + bool(wanted[1]))


def _rnn_layer(shapes: list[Shape], arguments: list[Any]) -> float:
    """One layer in one direction: (length, batch, width) by the weights of inputs and of the state before."""
    return 2.0 * math.prod(shapes[0][:-1]) * (math.prod(shapes[1]) + math.prod(shapes[2]))


def _twice(formula: Formula) -> Formula:
    """Backward: the gradients of inputs and of weights each take what forward took."""
    return lambda shapes, arguments: 2.0 * float(formula(shapes, arguments))  # type: ignore[arg-type]


_GATES = 1, 1, 4, 3  # cudnnRNNMode_t: relu, tanh, LSTM, GRU


def _cudnn_rnn(first: int, directions: int) -> Formula:
    """All layers, of which the weights have no shapes here. `first`: place of mode, hidden size, projection and number
    of layers; `directions`: place of whether there are two."""

    def formula(shapes: list[Shape], arguments: list[Any]) -> float:
        mode, hidden, projected, layers = arguments[first : first + 4]
        both = 2 if arguments[directions] else 1
        out = projected or hidden
        widths = shapes[0][-1] + (layers - 1) * both * out + layers * out  # of inputs, and of the state before
        gates = _GATES[mode] * hidden * widths + (layers * hidden * projected if projected else 0)
        return 2.0 * math.prod(shapes[0][:-1]) * both * float(gates)

    return formula


def _attention(query: Shape, key: Shape, value: Shape, *, backward: bool) -> float:
    """Scores and values: (batch, heads, rows, width). Backward computes the scores again (Dao et al. 2022)."""
    batch, heads, rows, width = query
    scores, values = 2.0 * width, 2.0 * value[3]
    each = 3 * scores + 2 * values if backward else scores + values
    return each * batch * heads * rows * key[2]


def _heads_first(first: int, *, backward: bool) -> Formula:
    def formula(shapes: list[Shape], arguments: list[Any]) -> float:
        return _attention(*shapes[first : first + 3], backward=backward)

    return formula


def _rows_first(first: int, offsets: int, longest: int, *, backward: bool) -> Formula:
    """(batch, rows, heads, width), or packed: (rows of all sequences, heads, width), also with a batch of 1, where
    there are `offsets`. `first`, `offsets`, `longest`: which arguments are the query, where sequences of queries and of
    keys begin, and how many rows the longest has."""

    def formula(shapes: list[Shape], arguments: list[Any]) -> float | Bounds:
        inputs = shapes[first : first + 3]
        packed = len(inputs[0]) == 3 or (len(inputs[0]) == 4 and len(shapes) > offsets and bool(shapes[offsets]))
        if not packed:
            turned = [[shape[0], shape[2], shape[1], shape[3]] for shape in inputs]
            return _attention(*turned, backward=backward)
        query, key, value = (shape[-3:] for shape in inputs)
        begins = [shapes[offsets], shapes[offsets + 1] or shapes[offsets]]
        pairs = _pairs((query[0], key[0]), begins[0][0] - 1, (*arguments[longest : longest + 2], None, None)[:2])
        of_a_pair = _attention([1, query[1], 1, query[2]], [1, 1, 1, 1], [1, 1, 1, value[2]], backward=backward)
        return pairs[0] * of_a_pair, pairs[1] * of_a_pair

    return formula


def _pairs(rows: tuple[int, int], sequences: int, longest: tuple[Any, Any]) -> Bounds:
    """The least and the most that the sum over sequences of (rows of queries times rows of keys) can be."""
    queries, keys = rows
    if sequences < 1 or not queries or not keys:
        return 0.0, 0.0
    most_queries, most_keys = (
        min(known, total) if isinstance(known, int) and known > 0 else total
        for known, total in zip(longest, rows, strict=True)
    )
    if queries != keys or most_queries != most_keys:  # sequences of one length each may meet the others' or not
        return 0.0, float(min(queries * most_keys, keys * most_queries))
    full, rest = divmod(queries, most_queries)
    most = float(full * most_queries**2 + rest**2)
    if not isinstance(longest[0], int) or sequences == 1:
        return min(most, queries**2 / sequences), most
    return min(most, most_queries**2 + (queries - most_queries) ** 2 / (sequences - 1)), most


NONE = 99
_SDPA = "aten::_scaled_dot_product_"
FORMULAS: Mapping[str, Formula] = {
    **{f"aten::{name}": _by_shapes(name) for name in ("mm", "addmm", "bmm", "baddbmm", "_scaled_mm", "linear")},
    "aten::_addmm_activation": _by_shapes("addmm"),
    "aten::_scaled_mm_v2": _by_shapes("mm"),
    "aten::_int_mm": _by_shapes("mm"),
    "aten::_weight_int8pack_mm": _by_shapes("linear"),
    "mkldnn::_linear_pointwise": _by_shapes("linear"),
    "mkl::_mkl_linear": _packed_linear,
    "aten::mkldnn_rnn_layer": _rnn_layer,
    "aten::mkldnn_rnn_layer_backward": _twice(_rnn_layer),
    "aten::_cudnn_rnn": _cudnn_rnn(6, 13),
    "aten::_cudnn_rnn_backward": _twice(_cudnn_rnn(10, 17)),
    "aten::_grouped_mm": _grouped,
    "aten::_scaled_grouped_mm": _grouped,
    "aten::convolution": _convolution,
    "aten::convolution_backward": _convolution_backward,
    **{
        f"{_SDPA}{kind}": _heads_first(0, backward=False)
        for kind in ("flash_attention", "efficient_attention", "cudnn_attention", "flash_attention_for_cpu")
    },
    **{
        f"{_SDPA}{kind}_backward": _heads_first(1, backward=True)
        for kind in ("flash_attention", "efficient_attention", "cudnn_attention", "flash_attention_for_cpu")
    },
    "flex_attention": _heads_first(0, backward=False),
    "flex_attention_backward": _heads_first(0, backward=True),
    "aten::_flash_attention_forward": _rows_first(0, 3, 5, backward=False),
    "aten::_flash_attention_backward": _rows_first(1, 6, 8, backward=True),
    "aten::_efficient_attention_forward": _rows_first(0, 4, 6, backward=False),
    "aten::_efficient_attention_backward": _rows_first(1, 6, 8, backward=True),
    "torch_attn::_varlen_attn": _rows_first(0, 3, 5, backward=False),
    "torch_attn::_varlen_attn_backward": _rows_first(1, 6, 8, backward=True),
    "flash_attn::_flash_attn_forward": _rows_first(0, NONE, NONE, backward=False),
    "flash_attn::_flash_attn_backward": _rows_first(1, NONE, NONE, backward=True),
    "flash_attn::_flash_attn_varlen_forward": _rows_first(0, 3, 5, backward=False),
    "flash_attn::_flash_attn_varlen_backward": _rows_first(1, 9, 11, backward=True),
}
"""Names and argument order as in torch 2.13 (native_functions.yaml, torch/nn/attention/varlen.py, the higher-order
operators) and flash-attn 2.8. native/providers/torch/input_text.cpp keeps arguments of the operators that need them."""
