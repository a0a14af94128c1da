"""What a program computes to look at itself, sorts for a few values, or pays more for as its batches grow."""

from __future__ import annotations

import ast

import pytest
from tests.analysis.test_findings import training
from tests.analysis.test_recorded_in_vain import called, program

from leadline.analysis.analyze import analyze
from leadline.analysis.calls_in_source import hooks_of
from leadline.analysis.rules.base import Case
from leadline.analysis.rules.grows import Grows
from leadline.analysis.rules.sorted_for_few import read_of_sorted

MS = 1_000_000


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ("v, i = torch.sort(x)\n    return i.gather(1, f(v[:, :k]))", "v[:, :k]"),
        ("v, i = x.sort(descending=True)\n    return torch.gather(i, 1, v[..., 0])", "v[..., 0]"),
        ("o = torch.argsort(x)\n    return y[o[-k:]]", "o[-k:]"),
        ("return torch.sort(x).values[:, 9:10]", "torch.sort(x).values[:, 9:10]"),
        ("return x.sort(-1)[0][:, -1]", "x.sort(-1)[0][:, -1]"),
        ("s = torch.sort(x)\n    return s.values[:k], s.indices[:k]", "s.values[:k]"),
        ("v, i = torch.sort(x)\n    return v.cumsum(-1), v[:, :k]", ""),  # all of it is summed
        ("v, i = torch.sort(x)\n    return v[:, :k], i", ""),
        ("v, i = torch.sort(x)\n    return v[:, 1:]", ""),  # all but the first
        ("v, i = torch.sort(x)\n    return v[::2]", ""),
        ("v, i = torch.sort(x)\n    return v[:k, :k]", ""),
        ("v, i = torch.sort(x)\n    return v[:-1]", ""),
        ("return sorted(x)[:k]", ""),
        ("return torch.sort(x)", ""),
    ],
)
def test_what_is_read_of_a_sort_is_read_from_the_source(body, asked):
    assert read_of_sorted(ast.parse(f"def sample(x):\n    {body}\n").body[0], 2) == asked


def sorting(tmp_path, text: str):
    file = tmp_path / "net.py"
    file.write_text(f"def sample(x, k):\n  values, indices = x.sort(-1, descending=True)\n  return {text}\n")
    profile = training(
        "python main @ /home/ada/train.py:43",
        f"  python sample @ {file}:2",
        "    " + called("aten::sort", 10, 60),
    )
    return [one for one in analyze(profile, ["redundant_work"]) if "sorts everything" in one.title]


def test_a_sort_of_which_a_few_values_are_read_is_a_selection(tmp_path):
    (found,) = sorting(tmp_path, "values[:, :k]")
    assert found.title == "aten::sort sorts everything, and only values[:, :k] is read, 38 % of the step"
    assert found.lines[0].line == 2
    assert "topk" in found.remedy
    assert sorting(tmp_path, "values.cumsum(-1)") == []


def test_functions_that_are_given_to_hooks_are_known_by_name():
    text = """
model.register_forward_hook(watch)
layer.register_full_backward_hook(self.norms)
p.register_hook(functools.partial(save, name))
m.register_forward_pre_hook(self.make(name))
model.register_comm_hook(None, compress)
model.register_buffer("scale", mean)
"""
    assert hooks_of(ast.parse(text)) == {
        "watch": "register_forward_hook",
        "norms": "register_full_backward_hook",
        "save": "register_hook",
        "name": "register_hook",
        "make": "register_forward_pre_hook",
    }


def watching(tmp_path, body: str, registers: str = "register_forward_hook(watch)", recorded: int = 0):
    file = tmp_path / "net.py"
    file.write_text(f"def watch(module, args, out):\n  {body}\n\ndef setup(model):\n  model.{registers}\n")
    inside = [
        "python main @ /home/ada/train.py:43",
        "  module model.head [Linear]",
        "    " + called("aten::addmm", 10, 10),
        f"    python watch @ {file}:2",
        "      " + called("aten::kthvalue", 10, 60, recorded),
    ]
    return [one for one in analyze(program(*inside), ["logging_in_loop"]) if one.title.startswith("The hook")]


def test_a_hook_that_looks_at_what_modules_make_is_named(tmp_path):
    (found,) = watching(tmp_path, "seen.append(out.detach().kthvalue(9).values)")
    assert found.title == "The hook watch computes in every step, 35 % of the step"
    assert found.lines[0].line == 2
    assert watching(tmp_path, "seen.append(out.kthvalue(9).values.item())", recorded=10)


@pytest.mark.parametrize(
    ("body", "registers", "recorded"),
    [
        ("return out.kthvalue(9).values", "register_forward_hook(watch)", 0),  # the model goes on with it
        ("features.append(out.kthvalue(9).values)", "register_forward_hook(watch)", 10),  # a loss may be made of it
        ("seen.append(out.detach())", "register_forward_hook(other)", 0),
        ("seen.append(out.detach())", "register_comm_hook(None, watch)", 0),
    ],
)
def test_a_hook_without_which_the_program_computes_something_else_is_not(tmp_path, body, registers, recorded):
    assert watching(tmp_path, body, registers, recorded) == []


def over_time(*paths: tuple[str, list[int]]):
    """Findings of `grows`; for each path what it took, in a run whose parts have 10, 20 and 10 calls."""
    profile = training()
    row = {"file": "/home/ada/train.py", "line": 42, "function": "main", "steps": [10, 20, 10], "calls": [10, 20, 10]}
    profile.meta["growth"] = [{**row, "what": what, "ns": [one * MS for one in ns]} for what, ns in paths]
    return Grows().check(Case(profile), Grows().values({}))


STEADY = [(f"aten::op{number}", [100, 200, 100]) for number in range(8)]


def test_one_path_that_grows_is_named_and_batches_that_grow_are_not():
    (found,) = over_time(("aten::sort", [100, 600, 900]), *STEADY)
    assert found.title.startswith("aten::sort takes 9 times as long late in the run as early")
    larger = [(what, [one * factor for one, factor in zip(ns, (1, 2, 4), strict=True)]) for what, ns in STEADY]
    assert over_time(("aten::sort", [100, 600, 900]), *larger) == []


def test_a_model_that_is_given_other_weights_in_the_loop_does_not_compute_the_same(tmp_path):
    def told(text: str):
        file = tmp_path / "train.py"
        file.write_text(f"def main():\n  teacher = make()\n  for step in range(9):\n    {text}\n    run(step)\n")
        lines = [f"python main @ {file}:5", "  phase forward", "    module teacher [Net]"]
        trained = ["python main @ /home/ada/train.py:42", "  phase forward", "    module model [Net]"]
        trained += ["      " + called("aten::addmm", 10, 10, 10), "        phase backward"]
        trained += ["          " + called("autograd::engine::evaluate_function: AddmmBackward0", 10, 10)]
        profile = program(*trained, *lines, "      " + called("aten::addmm", 10, 40))
        return [one for one in analyze(profile, ["redundant_work"]) if "is not trained" in one.title]

    assert told("pass")
    assert told("teacher.load_state_dict(model.state_dict())") == []
    assert told("for a, b in zip(teacher.parameters(), model.parameters()): a.lerp_(b, 0.1)") == []
