"""Inclusive values against a reference that adds every measurement to every ancestor, on trees of any shape."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.profiles import rollup
from leadline.profiles.measures import Measures, exclusive_measures, no_measures
from leadline.profiles.rollup import Shape, inclusive_measures
from leadline.schema import MetricKind


@st.composite
def parents(draw: st.DrawFn) -> np.ndarray:
    size = draw(st.integers(1, 60))
    deep = draw(st.booleans())
    rows = [draw(st.integers(max(0, row - 2) if deep else 0, row - 1)) for row in range(1, size)]
    return np.array([-1, *rows], np.int32)


def slow_inclusive(parent: np.ndarray, own: Measures) -> Measures:
    result = no_measures(len(parent))
    for row in range(len(parent)):
        at = row
        while at >= 0:
            result.count[at] += own.count[row]
            result.sum[at] += own.sum[row]
            result.min[at] = min(result.min[at], own.min[row])
            result.max[at] = max(result.max[at], own.max[row])
            result.sum_squares[at] += own.sum_squares[row]
            at = int(parent[at])
    return result


@given(parents(), st.data(), st.booleans())
def test_inclusive_equals_the_slow_reference(parent: np.ndarray, data: st.DataObject, by_node: bool) -> None:
    size = len(parent)
    values = st.lists(st.tuples(st.integers(0, size - 1), st.integers(-1000, 1000)), max_size=80)
    own = no_measures(size)
    for row, value in data.draw(values):
        own.count[row] += 1
        own.sum[row] += value
        own.min[row] = min(own.min[row], value)
        own.max[row] = max(own.max[row], value)
        own.sum_squares[row] += value * value
    shape = Shape(parent)
    got = rollup._inclusive_by_node(shape, own) if by_node else rollup._inclusive_by_level(shape, own)
    expected = slow_inclusive(parent, own)
    for column in ("count", "sum", "min", "max", "sum_squares"):
        np.testing.assert_array_equal(getattr(got, column), getattr(expected, column), err_msg=column)


@given(parents())
def test_shape_agrees_with_the_parents(parent: np.ndarray) -> None:
    shape = Shape(parent)
    for row in range(len(parent)):
        assert shape.children(row).tolist() == [child for child in range(len(parent)) if parent[child] == row]
        path, at = 0, int(parent[row])
        while at >= 0:
            path, at = path + 1, int(parent[at])
        assert shape.depth[row] == path
    levels = list(shape.levels())
    assert sorted(np.concatenate(levels).tolist()) == list(range(len(parent)))
    assert all((shape.depth[rows] == depth).all() for depth, rows in enumerate(levels))


@settings(deadline=None)
@given(st.sampled_from([1, 2, 1000, 200_000]))
def test_a_chain_of_any_depth_is_rolled_up(size: int) -> None:
    parent = np.arange(-1, size - 1, dtype=np.int32)
    own = no_measures(size)
    own.count[:] = 1
    own.sum[:] = 2
    got = inclusive_measures(Shape(parent), own)
    assert got.sum[0] == 2 * size
    assert got.count[-1] == 1


def test_rows_that_name_the_same_place_twice_are_added() -> None:
    metrics = {
        "node": np.array([1, 1, 0], "<u4"),
        "metric": np.zeros(3, "|u1"),
        "device": np.full(3, -1, "<i2"),
        "stream": np.full(3, -1, "<i4"),
        "count": np.array([1, 2, 0], "<u8"),
        "sum": np.array([5, 6, 9], "<i8"),
        "min": np.array([5, 2, 9], "<i8"),
        "max": np.array([5, 4, 9], "<i8"),
        "sum_squares": np.array([25.0, 20.0, 81.0]),
    }
    stat = exclusive_measures(metrics, 2, MetricKind.TIME).stat(1)
    assert (stat.count, stat.sum, stat.min, stat.max, stat.sum_squares) == (3, 11, 2, 5, 45.0)
    assert exclusive_measures(metrics, 2, MetricKind.TIME).stat(0).count == 0
