"""Whole columns against the plain loops they stand for, over drawn trees of every shape."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.analysis.columns import distinct, factorized, nearest, preorder, subtree_shares, subtree_sums
from leadline.analysis.origin import Origin, origin
from leadline.analysis.scopes import scopes
from leadline.profiles.builder import ProfileBuilder
from leadline.profiles.rollup import Shape

USER, PACKAGE = "/home/ada/train.py", "/usr/lib/python3.11/site-packages/lightning/loop.py"
TORCH, RUNTIME = "/usr/lib/python3.11/site-packages/torch/nn/module.py", "/usr/lib/python3.11/threading.py"
KINDS = ["python", "module", "operator", "region", "phase", "api", "thread", "process"]


@st.composite
def parents(draw):
    size = draw(st.integers(1, 40))
    return [-1, *(draw(st.integers(max(0, row - draw(st.integers(1, row))), row - 1)) for row in range(1, size))]


@st.composite
def drawn_trees(draw):
    builder = ProfileBuilder()
    nodes = [builder.node_of_thread(builder.thread(builder.process("p"), "t"))]
    for number in range(draw(st.integers(1, 30))):
        kind = draw(st.sampled_from(KINDS))
        above = nodes[draw(st.integers(max(0, len(nodes) - 4), len(nodes) - 1))]
        file = draw(st.sampled_from([USER, PACKAGE, TORCH, RUNTIME])) if kind == "python" else ""
        nodes.append(builder.child(above, builder.frame(kind, f"n{number}", file=file, line=number)))
    return builder.profile().tree


def paths(parent):
    for row in range(len(parent)):
        path = [row]
        while parent[path[-1]] >= 0:
            path.append(parent[path[-1]])
        yield row, path


@settings(deadline=None)
@given(parents(), st.randoms(use_true_random=False))
def test_nearest_sums_and_preorder(parent, random):
    shape = Shape(np.array(parent, np.int64))
    wanted = np.array([random.random() < 0.4 for _ in parent])
    values = np.array([random.randint(-5, 50) for _ in parent])
    found, sums, (place, size) = nearest(shape, wanted), subtree_sums(shape, values), preorder(shape)
    assert sorted(place.tolist()) == list(range(len(parent)))
    below = dict.fromkeys(range(len(parent)), 0)
    for row, path in paths(parent):
        assert found[row] == next((one for one in path if wanted[one]), -1)
        for one in path:
            below[one] += int(values[row])
            assert place[one] <= place[row] < place[one] + size[one]
    assert sums.tolist() == list(below.values())


@settings(deadline=None)
@given(drawn_trees())
def test_scopes_are_those_of_a_walk_down_the_path(tree):
    """The definition, read along one path at a time."""
    columns = scopes(tree)
    for row, path in paths(tree.parent.tolist()):
        user = module = phase = outer = inner = thread = -1
        for one in reversed(path):
            node = tree.node(one)
            if node.kind in ("thread", "process"):
                thread = one if node.kind == "thread" else thread
                user = module = phase = outer = inner = -1
            elif node.kind == "python" and (user < 0 or origin(node.file) >= origin(tree.node(user).file)):
                user, outer = one, -1
            elif node.kind == "module":
                module, outer = one, -1
            elif node.kind == "phase":
                phase, outer = one, -1
            elif node.kind == "operator":
                inner = one
                outer = one if outer < 0 or tree.node(outer).kind == "region" else outer
            elif node.kind == "region" and outer < 0:
                outer = one
        found = [int(getattr(columns, name)[row]) for name in ("user", "module", "phase", "outer", "inner", "thread")]
        assert found == [user, module, phase, outer, inner, thread]


def test_a_tree_of_a_million_levels_takes_no_step_per_level():
    parent = np.arange(-1, 1_000_000 - 1)
    shape = Shape(parent)
    wanted = np.zeros(len(parent), np.bool_)
    wanted[10] = True
    assert nearest(shape, wanted)[-1] == 10
    assert subtree_sums(shape, np.ones(len(parent), np.int64))[0] == len(parent)


def test_origins_rank_the_user_first():
    assert [origin(file) for file in (RUNTIME, TORCH, PACKAGE, USER)] == sorted(Origin)


numbers = st.lists(st.integers(-5, 5) | st.integers(-(2**62), 2**62), max_size=30).map(
    lambda values: np.array(values, np.int64)
)


@given(numbers)
def test_distinct_is_unique_with_its_inverse(values):
    found, group = distinct(values)
    wanted, inverse = np.unique(values, return_inverse=True)
    assert (found.tolist(), group.tolist()) == (wanted.tolist(), inverse.tolist())


@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 10**12)), min_size=1, max_size=30))
def test_equal_rows_and_only_those_share_a_number(rows):
    numbered = factorized(*(np.array(column, np.int64) for column in zip(*rows, strict=True)))
    assert len(set(zip(rows, numbered.tolist(), strict=True))) == len(set(rows)) == len(set(numbered.tolist()))


@given(parents(), st.integers(1, 2**62))
def test_shares_are_at_most_one_however_large_the_values(parent, value):
    shares = subtree_shares(Shape(np.array(parent, np.int64)), np.full(len(parent), value))
    assert shares[0] == 1
    assert shares.min() > 0
    assert shares.max() <= 1
