"""Work that is done again or in parts: backward passes, checkpointing, texts without a cache, attention, zeros."""

from __future__ import annotations

import random

import pytest
from tests.analysis.test_findings import training

from leadline.analysis.analyze import analyze
from leadline.profiles.build import build

MS = 1_000_000
ENGINE = "autograd::engine::evaluate_function: "


def operator(name: str, calls: int, ms: float = 0.0, more: str = "") -> str:
    return f"operator {name} | time={int(ms * MS)}/{calls} call_time={int(ms * MS)}/{calls}{more}"


def inside(*lines: str, habits: dict[str, object] | None = None):
    profile = training("python main @ /home/ada/train.py:43", *("  " + line for line in lines))
    profile.meta["available"] = {"torch": {"ok": True, "habits": habits or {"unused_gradients": {}}}}
    return profile


def told(profile, rule: str):
    return [one for one in analyze(profile, [rule]) if one.rule == rule]


def with_backward(calls: int, *more: str):
    return inside(
        operator("aten::conv2d", 10, 5),
        "  " + operator("aten::convolution", 10, 0),
        "    phase backward",
        "      " + operator(f"{ENGINE}ConvolutionBackward0", calls),
        "        " + operator("ConvolutionBackward0", calls, 40),
        *("          " + line for line in more),
    )


def test_several_backward_passes_through_one_forward_pass_are_counted():
    (found,) = told(with_backward(40), "redundant_work")
    assert found.title == "The same forward pass has 4 backward passes, 21 % of the step"
    assert found.severity.value == "warning"
    assert found.gain.expected_ns == 3 * MS  # three of four passes of 1 ms
    assert found.lines[0].line == 43


@pytest.mark.parametrize(
    "profile",
    [
        with_backward(10),
        # a gradient of the gradient needs the second pass
        with_backward(20, "phase backward", "  " + operator(f"{ENGINE}MulBackward0", 10, 1)),
        # two operators of one kind behind one that calls both, and another kind once
        inside(
            operator("aten::attend", 10, 5),
            "  phase backward",
            "    " + operator(f"{ENGINE}BmmBackward0", 20, 20),
            "    " + operator(f"{ENGINE}SoftmaxBackward0", 10, 20),
        ),
    ],
)
def test_one_backward_pass_is_one(profile):
    assert told(profile, "redundant_work") == []


def test_what_checkpointing_computes_again_is_told_without_its_backward_pass():
    (found,) = told(
        inside(
            operator("CheckpointFunction", 10, 5),
            "  phase backward",
            "    " + operator("CheckpointFunctionBackward", 10, 1),
            "      phase recompute",
            "        " + operator("aten::linear", 10, 20),
            "          phase backward",
            "            " + operator("AddmmBackward0", 10, 30),
        ),
        "redundant_work",
    )
    assert found.title == "Checkpointing computes forward passes again, 13 % of the step"
    assert found.severity.value == "info"
    assert found.gain.expected_ns == 2 * MS


def generating(sizes: list[int]):
    listed = ",".join(map(str, sizes))
    number = len(sizes)
    return build(
        f"""
process talk.py | pid=5
  thread main | tid=5
    python generate @ talk.py:7
      module model [Model]
        module model.up [Linear]
          operator aten::linear | time={number * MS}/{number} call_time={number * MS}/{number}
            operator aten::addmm | time={number * MS}/{number} call_time={number * MS}/{number} alloc_bytes={listed}
""".lstrip("\n")
    )


EVEN = [512 * (64 + turn) for turn in range(40)]


@pytest.mark.parametrize("sizes", [EVEN, EVEN * 3], ids=["one text", "three texts"])
def test_layers_that_see_the_whole_text_in_each_turn_are_named(sizes: list[int]):
    (found,) = told(generating(sizes), "redundant_work")
    assert "computes again what earlier iterations computed" in found.title
    assert found.lines[0].line == 7
    assert "use_cache" in found.remedy


def test_layers_whose_shapes_are_kept_are_one_layer():
    """With shapes each length of the text is a node of its own."""
    lines = ["process talk.py | pid=5", "  thread main | tid=5", "    python generate @ talk.py:7"]
    lines += ["      module model [Model]", "        module model.up [Linear]"]
    for turn, size in enumerate(EVEN):
        shapes = f'detail={{"shapes":[[{64 + turn},128]],"types":["float"]}}'
        lines.append(f"          operator aten::addmm | time={MS}/1 call_time={MS}/1 alloc_bytes={size} {shapes}")
    (found,) = told(build("\n".join(lines)), "redundant_work")
    assert "computes again what earlier iterations computed" in found.title


def test_one_new_token_a_turn_and_lengths_by_chance_are_no_such_thing():
    chance = random.Random(3)
    lengths = [[512 * 64] + [512] * 39, [512] * 40]
    lengths += [[512 * chance.randint(16, 512) for _ in range(200)] for _ in range(40)]
    assert [sizes for sizes in lengths if told(generating(sizes), "redundant_work")] == []


def attention(*above: str):
    indent = "  " * (1 + len(above))
    parts = (
        operator("aten::bmm", 20, 30, " alloc_bytes=400000/20"),
        operator("aten::softmax", 10, 0),
        "  " + operator("aten::_softmax", 10, 20, " alloc_bytes=8000000/10"),
    )
    outer = ["  " * (1 + place) + line for place, line in enumerate(above)]
    return inside("module net.attend [MultiheadAttention]", *outer, *(indent + part for part in parts))


def test_attention_in_parts_is_named_and_the_operator_for_it_is_not():
    (found,) = told(attention(), "kernel_fusion")
    assert found.title == "Attention is computed in parts, 33 % of the step"
    assert "1 times a step" in found.evidence[0] and found.evidence[1] == "the largest result is 781 KiB"
    assert "need_weights=False" in found.remedy
    assert told(attention(operator("aten::scaled_dot_product_attention", 10)), "kernel_fusion") == []


def test_a_softmax_over_classes_is_no_attention():
    lines = ("module net.head [Head]", "  " + operator("aten::bmm", 10, 30), "  " + operator("aten::_softmax", 10, 20))
    assert told(inside(*lines), "kernel_fusion") == []


@pytest.mark.parametrize(("double", "number"), [(1000, 1), (10, 0)])
def test_a_model_of_double_precision_is_named(double: int, number: int):
    habits = {"updated": {"parameters": 1000, "bytes": 8000, "double": double}}
    found = told(inside(operator("aten::addmm", 10, 50), habits=habits), "matmul_shape")
    assert len(found) == number
    assert all("of double precision" in one.title and "100 % of the 1.00 k updated" in one.evidence[0] for one in found)


def embedding(looked_up: int, whole: int, *lines: str, backward_ms: float = 30, parts: int = 2, more: str = ""):
    return inside(
        operator("aten::embedding", 10, 0, more),
        "  " + operator("aten::index_select", 10, 1, f" alloc_bytes={10 * looked_up}/10"),
        "  phase backward",
        "    " + operator("aten::embedding_dense_backward", 10, backward_ms),
        "      " + operator("aten::empty", 10, 0, f" alloc_bytes={10 * whole}/10"),
        *lines,
        habits={"updated": {"parameters": 1, "bytes": parts * whole, "double": 0}},
    )


def test_a_gradient_that_is_mostly_zero_is_named():
    (found,) = told(embedding(120_000, 51_200_000), "unused_gradients")
    assert found.title.startswith("At most 0.2 % of an embedding's gradient is not zero; making and applying it takes")
    assert found.lines[0].line == 43
    assert "48.8 MiB" in found.evidence[0] and "117 KiB" in found.evidence[0]


def test_two_embeddings_are_one_finding_with_the_gain_of_both():
    def of(*second: str):
        return told(embedding(120_000, 51_200_000, *second, backward_ms=15), "unused_gradients")

    second = (
        "module net.second [Embedding]",
        "  " + operator("aten::embedding", 10),
        "    " + operator("aten::index_select", 10, 1, " alloc_bytes=1200000/10"),
        "    phase backward",
        "      " + operator("aten::embedding_dense_backward", 10, 15),
        "        " + operator("aten::empty", 10, 0, " alloc_bytes=512000000/10"),
    )
    (one,), (both,) = of(), of(*second)
    assert "the embeddings' gradients" in both.title and len(both.paths) == 2
    assert both.gain.expected_ns > 1.8 * one.gain.expected_ns


@pytest.mark.parametrize(("parts", "fused"), [(2, False), (4, True)])
def test_an_optimizer_whose_gradients_should_be_sparse_is_not_told_to_be_fused(parts: int, fused: bool):
    """The fused form refuses sparse gradients; it is advised where most parameters are others."""
    update = ("phase optimizer", "  " + operator("aten::sqrt", 1000, 40))
    made = embedding(120_000, 51_200_000, *update, parts=parts)
    assert len(told(made, "unused_gradients")) == 1
    assert bool(told(made, "optimizer_loop")) is fused


def test_a_small_vocabulary_and_one_that_the_output_shares_are_left_alone():
    assert told(embedding(120_000, 480_000), "unused_gradients") == []
    shared = ("  phase backward", "    " + operator("MmBackward0", 10, 30, " alloc_bytes=512000000/10"))
    assert told(embedding(120_000, 51_200_000, operator("aten::mm", 10, 1), *shared), "unused_gradients") == []


CLIPPING = "python clip_grad_norm_ @ /lib/python3.12/site-packages/torch/nn/utils/clip_grad.py:230"


@pytest.mark.parametrize(
    ("backward_ms", "severities"), [(30, ["info"]), (2, [])], ids=["worth a change of the training", "not worth it"]
)
def test_no_sparse_gradients_are_advised_as_they_stand_where_the_steps_clip(backward_ms, severities):
    norm = "  " + operator("aten::_foreach_norm", 10, 1)
    found = told(
        embedding(120_000, 51_200_000, CLIPPING, norm, backward_ms=backward_ms, parts=20),
        "unused_gradients",
    )
    assert [one.severity.value for one in found] == severities
    assert all("Leave its gradient out of clipping" in one.remedy.partition(". ")[0] for one in found)


def test_sparse_gradients_that_nothing_refuses_are_advised_as_they_are():
    (found,) = told(embedding(120_000, 51_200_000), "unused_gradients")
    assert found.severity.value == "warning" and found.remedy.startswith("Use nn.Embedding(..., sparse=True)")


def test_clipping_of_other_parameters_refuses_no_sparse_gradient():
    norm = "  " + operator("aten::linalg_vector_norm", 10, 1, ' detail={"shapes":[[64,64],[],[]]}')
    weight = ' detail={"shapes":[[200000,64],[20]]}'
    (found,) = told(embedding(120_000, 51_200_000, CLIPPING, norm, more=weight), "unused_gradients")
    assert "Leave its gradient out" not in found.remedy


def test_sharded_parameters_have_no_sparse_gradients():
    scatter = operator("c10d::_reduce_scatter_base_", 10, 1)
    assert told(embedding(120_000, 51_200_000, scatter), "unused_gradients") == []


def test_an_optimizer_with_weight_decay_is_no_sparse_one(tmp_path):
    for given, says in (("weight_decay=0.01", True), ("weight_decay=0", False), ("lr=0.1", False)):
        (tmp_path / "net.py").write_text(f"optimizer = torch.optim.Adam(model.parameters(), {given})\n")
        (found,) = told(embedding(120_000, 51_200_000, f"python main @ {tmp_path}/net.py:1"), "unused_gradients")
        assert ("give it no weight decay" in found.remedy.lower()) is says


def test_gradients_that_are_cleared_before_their_optimizer_steps_are_named():
    def adversarial(habits):
        lines = []
        for line in (43, 45):
            lines += [
                f"python main @ /home/ada/train.py:{line}",
                "  module generator [Generator]",
                "    " + operator("aten::linear", 10, 5),
                "      phase backward",
                "        " + operator(f"{ENGINE}AddmmBackward0", 10, 20),
            ]
        profile = training(*lines)
        profile.meta["available"] = {"torch": {"ok": True, "habits": habits}}
        return profile

    thrown = {"modules": [{"module": "", "class": "Generator", "parameters": 9}], "parameters": 9}
    (found,) = told(adversarial({"discarded_gradients": thrown}), "unused_gradients")
    assert "computed and discarded before their optimizer steps, about 13 % of the step" in found.title
    assert found.lines[0].line == 43
    assert found.gain.expected_ns == 2 * MS
    assert told(adversarial({"unused_gradients": {}}), "unused_gradients") == []


def test_a_loop_whose_turns_need_each_other_is_a_note(tmp_path):
    source = "def forward(self, xs):\n    state = 0\n    for x in xs:\n        state = self.step(x + state)\n    return state\n"
    (tmp_path / "net.py").write_text(source)
    profile = training(
        "python main @ /home/ada/train.py:43",
        f"  python forward @ {tmp_path}/net.py:4",
        "    " + operator("aten::linear", 1000, 60),
    )
    (found,) = told(profile, "python_overhead")
    assert found.severity.value == "info"
    assert "nn.GRU" in found.remedy
    assert found.gain.low_ns == 0
    (tmp_path / "net.py").write_text(source.replace("x + state", "x"))
    (independent,) = told(profile, "python_overhead")
    assert independent.severity.value == "warning"
