"""What a loop's text says that it does not change."""

from __future__ import annotations

import ast

import pytest

from leadline.analysis.unchanged import changed_names, plain_calls, trains_between


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        ("y = x + 1", {"y"}),
        ("x.data[0] = 1", {"x"}),
        ("x.add_(1)", {"x"}),
        ("items.append(x)", {"items"}),
        ("loss = net(x).mean().backward()", {"loss"}),
        ("for p, q in zip(teacher.parameters(), net.parameters()): p.mul_(0.9)", {"p", "q", "teacher", "net"}),
        ("update_ema(teacher, net)", {"teacher", "net"}),
        ("out = generate(lambda x: net(x), y)", {"out", "x"}),
        ("with open(name) as file: del file", {"file"}),
    ],
)
def test_a_name_counts_as_changed_where_anything_could_change_it(body, changed):
    assert changed_names(ast.parse(body)) == changed


def test_only_calls_of_names_by_names_are_plain():
    tree = ast.parse("a = model.encoder(x, mask=m)\nb = model(next(batches))\nc = f(lambda: x)\n")
    assert [call.text for call in plain_calls(tree, 1)] == ["model.encoder(x, mask=m)"]
    assert plain_calls(tree, 1)[0].names == {"model", "x", "m"}
    assert [call.text for call in plain_calls(tree, 2)] == ["next(batches)"]
    assert plain_calls(tree, 3) == []


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("errors = [loss(net(x), y) for x, y in valid]", []),
        ("errors = {net(y): x for x, _ in pairs}", ["net(y)"]),
        ("best = max(net(x) for x in parts)", []),
    ],
)
def test_what_a_comprehension_binds_is_another_name(text, plain):
    assert [call.text for call in plain_calls(ast.parse(text), 1)] == plain


def test_weights_are_others_behind_an_optimizers_step():
    text = "loss = net(x)\noptimizer.step()\nafter = net(x)\n"
    assert trains_between(ast.parse(text), 1, 2)
    assert not trains_between(ast.parse(text), 3, 3)
