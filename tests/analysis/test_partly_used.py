"""What is computed for nothing or in a roundabout way: positions, one-hot rows, frozen parts, pairs, Python's sum."""

from __future__ import annotations

import ast

import pytest
from tests.analysis.test_findings import training
from tests.analysis.test_recorded_in_vain import called, passes, program

from leadline.analysis.analyze import analyze
from leadline.analysis.rules.last_logits import only_last
from leadline.analysis.rules.partly_used import only_asked_for
from leadline.profiles.build import build

MS = 1_000_000
MIB = 1 << 20


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ("y = f(x)\n    return y[:, -1]", "y[:, -1]"),
        ("y = f(x)\n    return y[:, 0].exp() + y[:, 0]", "y[:, 0]"),
        ("return f(x)[:, -1]", "[:, -1]"),
        ("y = f(x)\n    return y[:, -1], y.sum()", ""),  # used as a whole, too
        ("y = f(x)\n    return y[:, -1] + y[:, 0]", ""),  # two positions
        ("y = f(x)\n    return y[-1]", ""),  # one of the batch
        ("y = f(x)\n    return y[:, 1:]", ""),
        ("y = f(x)\n    y = g(y)\n    return y[:, -1]", ""),  # another value of that name
        ("return f(x)", ""),
        ("return f(x)[:, None]", ""),  # one dimension more, and all of it
        ("return f(x)[:, True]", ""),
    ],
)
def test_what_is_asked_of_a_result_is_read_from_the_source(body, asked):
    tree = ast.parse(f"def forward(x):\n    {body}\n")
    assert only_asked_for(tree.body[0], 2) == asked


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ("out = f(x)\n    return out.logits[:, -1, words], out.past_key_values", "out.logits[:, -1, words]"),
        ("y = f(x).logits\n    return y[:, -1]", "y[:, -1]"),
        ("return f(x).logits[:, -1:]", "f(x).logits[:, -1:]"),
        ("out = f(x)\n    return out", ""),  # handed on as a whole
        ("out = f(x, logits_to_keep=1)\n    return out.logits[:, -1]", ""),
        ("out = f(x, **more)\n    return out.logits[:, -1]", ""),  # may hold it
        ("out = f(x)\n    return out.logits[:, :-1]", ""),
        ("out = f(x)\n    return out.logits[:, -1], out.logits.mean()", ""),
        ("out = f(x)\n    return out.logits[:, 5]", ""),
    ],
)
def test_scores_of_the_last_position_are_read_from_the_source(body, asked):
    tree = ast.parse(f"def score(x):\n    {body}\n")
    assert only_last(tree.body[0], 2) == asked


def scored(tmp_path, length: int, line: str = "out = self.model(x)", module: str = "LlamaForCausalLM"):
    file = tmp_path / "rank.py"
    file.write_text(f"class Ranker:\n  def score(self, x):\n    {line}\n    return out.logits[:, -1]\n")
    profile = training(
        "python main @ /home/ada/train.py:43",
        f"  python Ranker.score @ {file}:3",
        f"    module model [{module}]",
        "      module model.lm_head [Linear]",
        "        " + called("aten::linear", 10, 60) + f' detail={{"shapes":[[8,{length},256],[32000,256]]}}',
    )
    return [one for one in analyze(profile, ["redundant_work"]) if "positions" in one.title]


def test_a_head_whose_scores_of_the_last_position_alone_are_read_is_named(tmp_path):
    (found,) = scored(tmp_path, 128)
    assert "computes 128 positions, and only out.logits[:, -1] is used" in found.title
    assert "logits_to_keep=1" in found.remedy and found.lines[0].line == 3
    assert not scored(tmp_path, 1)  # a step of generation with a cache
    assert not scored(tmp_path, 128, "out = self.model(x, logits_to_keep=1)")
    assert not scored(tmp_path, 128, module="MyModel")


def positions(tmp_path, module: str, text: str, selected: list[int] | None = None):
    """`selected`: the shape of what a position is taken of; None: shapes were not recorded."""
    file = tmp_path / "net.py"
    file.write_text(f"class Net:\n  def forward(self, x):\n    scores = self.head(x)\n    return {text}\n")
    shapes = "" if selected is None else f' detail={{"shapes":[[{",".join(map(str, selected))}],[],[]]}}'
    profile = training(
        "python main @ /home/ada/train.py:43",
        f"  python Net.forward @ {file}:3",
        f"    module net.head [{module}]",
        "      " + called("aten::linear", 10, 60),
        f"  python Net.forward @ {file}:4",
        "    " + called("aten::select", 10, 0.001) + shapes,
    )
    return [one for one in analyze(profile, ["redundant_work"]) if "all positions" in one.title]


def test_a_layer_whose_last_position_alone_is_used_is_named(tmp_path):
    (found,) = positions(tmp_path, "Linear", "scores[:, -1]")
    assert found.title == "net.head computes all positions, and only scores[:, -1] is used, 37 % of the step"
    assert found.lines[0].line == 3


@pytest.mark.parametrize(
    ("text", "selected", "told"),
    [
        ("scores[:, 0]", [8, 128, 512], True),
        ("scores[:, 0]", [8, 1, 512], False),  # takes a dimension away
        ("scores[:, 0]", [8, 1], False),
        ("scores[:, 0]", [8, 10], False),  # a column, of a layer that makes each row from all of its input
        ("scores[:, 0]", None, False),
        ("scores[:, -1]", [8, 128, 512], True),
    ],
)
def test_a_dimension_taken_away_and_a_column_are_no_position(tmp_path, text, selected, told):
    assert bool(positions(tmp_path, "Linear", text, selected)) == told


def test_layers_that_mix_positions_and_results_that_are_used_are_left_alone(tmp_path):
    assert positions(tmp_path, "GRU", "scores[:, -1]") == []
    assert positions(tmp_path, "Linear", "scores") == []


def test_a_layer_in_the_midst_of_a_library_s_stack_is_left_alone(tmp_path):
    file = tmp_path / "net.py"
    file.write_text("class Net:\n  def forward(self, x):\n    return self.encoder(x)[:, 0]\n")
    profile = training(
        "python main @ /home/ada/train.py:43",
        f"  python Net.forward @ {file}:3",
        "    module net.encoder [TransformerEncoder]",
        "      module net.encoder.layers.0.linear1 [Linear]",
        "        " + called("aten::linear", 10, 60),
    )
    assert not [one for one in analyze(profile, ["redundant_work"]) if "all positions" in one.title]


def test_one_hot_rows_times_a_matrix_are_a_look_up():
    at = "python main @ /home/ada/train.py:43"
    hot, product = "  " + called("aten::one_hot", 10, 10), "  " + called("aten::mm", 10, 30)
    (found,) = [one for one in analyze(training(at, hot, product), ["redundant_work"]) if "one-hot" in one.title]
    assert found.lines[0].line == 43
    elsewhere = training(at, hot, "python main @ /home/ada/train.py:45", product)
    assert not [one for one in analyze(elsewhere, ["redundant_work"]) if "one-hot" in one.title]


def test_a_sparse_matrix_that_is_made_dense_to_be_multiplied_is_named():
    at = "python main @ /home/ada/train.py:43"
    dense, product = "  " + called("aten::to_dense", 20, 10), "  " + called("aten::mm", 20, 30)
    (found,) = [one for one in analyze(training(at, dense, product), ["redundant_work"]) if "made dense" in one.title]
    assert found.lines[0].line == 43
    assert "torch.sparse.mm" in found.remedy
    assert not [one for one in analyze(training(at, product), ["redundant_work"]) if "made dense" in one.title]


@pytest.mark.parametrize(("line", "named"), [(7, True), (9, False)])
def test_one_hot_rows_of_a_package_are_told_by_its_own_lines(line, named):
    at, package = "python main @ /home/ada/train.py:43", "  python pick @ /venv/lib/python3.11/site-packages/vq/book.py"
    made = [f"{package}:7", "    " + called("aten::one_hot", 10, 10), f"{package}:{line}"]
    found = analyze(training(at, *made, "    " + called("aten::einsum", 10, 30)), ["redundant_work"])
    found = [one.evidence[1] for one in found if "one-hot" in one.title]
    assert found == (["in vq/book.py:7 pick"] if named else [])


@pytest.mark.parametrize(("sizes", "grows"), [(range(1, 41), True), ([1, 11, 21, 31, 41] * 8, False)])
def test_joins_that_grow_are_told_from_sizes_that_take_turns(sizes, grows):
    cat = called("aten::cat", 40, 30) + " alloc_bytes=" + ",".join(str(one * 1000) for one in sizes)
    found = analyze(training("python main @ /home/ada/train.py:43", "  " + cat), ["redundant_work"])
    assert [one.title.startswith("aten::cat copies a tensor that grows") for one in found] == [True] * grows


def told_frozen(*lines):
    trained = ["python main @ /home/ada/train.py:42", "  phase forward", "    module model [Net]"]
    trained += ["      " + called("aten::addmm", 10, 10, 10), "        phase backward"]
    trained += ["          " + called("autograd::engine::evaluate_function: AddmmBackward0", 10, 10)]
    found = analyze(program(*trained, *lines), ["redundant_work"])
    return [one for one in found if "is not trained" in one.title]


def test_a_part_that_nothing_trains_is_a_note():
    (found,) = told_frozen(*passes(43, 10, 40, 0))
    assert (found.severity.value, found.lines[0].line, found.gain.low_ns) == ("info", 43, 0)
    assert told_frozen(*passes(43, 10, 40, 10)) == []
    assert told_frozen(*[line.replace("teacher", "model") for line in passes(43, 10, 40, 0)]) == []  # it is evaluated
    assert told_frozen(*passes(43, 10, 40, 0), "      " + called("aten::bernoulli_", 10, 1)) == []


def pairs(
    large: int, small: int, others: int, *, shapes: str = "", within: str = "python main @ /home/ada/train.py:43"
):
    more = " alloc_bytes={}/10"
    detail = f' detail={{"shapes":{shapes}}}' if shapes else ""
    profile = training(
        "python main @ /home/ada/train.py:43",
        "  " + within,
        "    " + called("aten::sub", 10, 40, 0, more.format(10 * large) + detail),
        "    " + called("aten::pow", 10, 40, 0, more.format(10 * large)),
        "    " + called("aten::sum", 10, 20, 0, more.format(10 * small)),
        "python main @ /home/ada/train.py:45",
        "  " + called("aten::mm", 10, 5, 0, more.format(10 * others)),
    )
    return [one for one in analyze(profile, ["kernel_fusion"]) if "of pairs" in one.title]


def test_pairs_that_are_made_to_be_added_up_are_named():
    (found,) = pairs(16 * MIB, MIB // 4, MIB // 8)
    assert found.title.startswith("16.0 MiB of pairs are written to memory and reduced to 256 KiB")
    assert "torch.cdist" in found.remedy and found.lines[0].line == 43


def test_rows_that_are_normalised_are_no_pairs():
    sizes = (16 * MIB, MIB // 4, MIB // 8)
    assert len(pairs(*sizes, shapes="[[2048,1,64],[1,32,64]]")) == 1
    assert pairs(*sizes, shapes="[[65536,64],[65536,1]]") == []  # no larger than what it is made of
    assert pairs(*sizes, within="python normalize @ /usr/lib/python3/site-packages/torch/nn/functional.py:9") == []


@pytest.mark.parametrize(
    ("large", "small", "others"),
    [(16 * MIB, MIB // 4, 16 * MIB), (16 * MIB, 4, MIB), (16 * MIB, 16 * MIB, MIB), (MIB // 2, 4096, 4096)],
    ids=["as large as others", "a loss", "nothing is reduced", "small"],
)
def test_norms_losses_and_small_tensors_are_no_pairs(large, small, others):
    assert pairs(large, small, others) == []


def test_pythons_own_sum_of_a_tensor_is_a_loop(tmp_path):
    file = tmp_path / "net.py"

    def told(text: str):
        file.write_text(f"def total(x):\n    return {text}\n")
        line = f"  python total @ {file}:2"
        profile = training("python main @ /home/ada/train.py:43", line, "    " + called("aten::add", 640, 32))
        return analyze(profile, ["python_overhead"])

    (found,) = told("sum(x)")
    assert found.title.startswith("Python's sum() calls 64 operators a step,")
    assert found.lines[0].line == 2
    assert "tensor.sum()" in found.remedy
    assert not [one for one in told("x.sum()") if "operators a step" in one.title]


def test_many_backward_passes_of_one_forward_pass_are_one_turn_each():
    """Rows of a Jacobian: nothing but the model's calls says how often the loop turned."""
    profile = build(
        f"""
process jac.py | pid=5
  thread main | tid=5
    python main @ jac.py:7
      phase forward
        module model [Net]
          operator aten::addmm | time={MS}/20 call_time={MS}/20
            phase backward
              operator AddmmBackward0 | time={48 * MS}/480 call_time={48 * MS}/480
""".lstrip("\n")
    )
    found = analyze(profile, ["redundant_work"])
    assert found.steps == 20


def test_functions_on_the_lines_of_modules_are_not_their_calls(tmp_path):
    file = tmp_path / "net.py"

    def told(argument: str):
        calls = f"a = self.encoder({argument})\n    b = self.encoder({argument})"
        file.write_text(f"import torch\ndef step(self, x):\n    {calls}\n    return a, b\n")
        lines = []
        for line in (3, 4):
            lines += [f"python step @ {file}:{line}", "  module net.encoder [Encoder]"]
            lines += ["    " + called("aten::linear", 10, 20)]
        profile = training("python main @ /home/ada/train.py:43", *("  " + line for line in lines))
        return [one.title for one in analyze(profile, ["redundant_work"]) if "same inputs" in one.title]

    (title,) = told("x")
    assert title.startswith("self.encoder(x) is computed at lines 3 and 4 with the same inputs")
    assert told("x[len(x)]") == []
    assert told("torch.flatten(x)") == []
