"""The later segment less the earlier one: files that follow one another are the whole, whatever was measured between."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.profiles.builder import ProfileBuilder
from leadline.profiles.interval import between
from leadline.profiles.merge import merge_profiles
from leadline.profiles.profile import Profile
from leadline.profiles.tables import Tables

MEASUREMENTS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["a", "b"]), st.integers(0, 10**9)), max_size=12
)


def segment(measured: list, end_ns: int, losses: int = 0) -> Tables:
    """Cumulative, as a process writes it: rows never move."""
    builder = ProfileBuilder()
    process = builder.process("train.py", start_ns=1, end_ns=end_ns)
    thread = builder.thread(process, "main", wall_ns=end_ns, cpu_ns=end_ns // 2)
    for outer, inner, value in measured:
        above = builder.child(builder.node_of_thread(thread), builder.frame("region", outer))
        builder.add(builder.child(above, builder.frame("operator", inner)), "time", value)
    if losses:
        builder.loss(process, "free_unknown", losses, "")
    return builder.tables()


def rows(tables: Tables) -> dict:
    """Path: count, sum, least, most."""
    profile = Profile(tables, {"processes": []})
    found = {}
    for node in profile.tree.walk():
        value = node.exclusive("time")
        if value.count:
            path = tuple(one.name for one in node.path() if str(one.kind) in ("region", "operator"))
            before = found.get(path, (0, 0, value.min, value.max))
            found[path] = (
                before[0] + value.count, before[1] + value.sum, min(before[2], value.min), max(before[3], value.max)
            )  # fmt: skip
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(MEASUREMENTS, min_size=1, max_size=5))
def test_differences_add_up_to_the_whole_and_extremes_are_bounds(stretches: list) -> None:
    before, done, pieces = None, [], []
    for number, stretch in enumerate(stretches, 1):
        done = done + stretch
        now = segment(done, end_ns=1000 * number)
        piece = between(now, before)
        true = rows(segment(stretch, end_ns=1000 * number))
        told = rows(piece.tables)
        assert {path: value[:2] for path, value in told.items()} == {path: value[:2] for path, value in true.items()}
        for path, (_, _, least, most) in true.items():
            assert told[path][2] <= least and told[path][3] >= most
        exact = sum(told[path][at] == true[path][at] for path in true for at in (2, 3))
        assert exact >= 2 * len(true) - piece.bounds and piece.extremes == 2 * len(true)
        assert int(piece.tables["threads"]["wall_ns"][0]) == 1000
        pieces.append(piece.tables)
        before = now
    meta = {"processes": [], "started_at_ns": 0, "wall_ns": 0, "complete": True}
    merged = merge_profiles([Profile(one, meta) for one in pieces])
    assert rows(merged.tables) == rows(segment(done, 0))


def test_a_bound_is_near_the_truth_where_a_run_has_one_long_moment() -> None:
    """Else every file after a stall of an hour would show it."""
    calm = [("a", "a", 1000 + one % 10) for one in range(1000)]
    before = segment([("a", "a", 10**12), *calm], 1000)
    piece = between(segment([("a", "a", 10**12), *calm, *calm], 2000), before)
    assert piece.bounds == 2
    (most,) = [value[3] for value in rows(piece.tables).values()]
    assert most >= 1009


def test_losses_and_the_tree_are_of_the_stretch() -> None:
    first = [("a", "a", 5)]
    before, now = segment(first, 10, losses=3), segment([*first, ("b", "b", 7)], 20, losses=5)
    piece = between(now, before).tables
    assert piece["losses"]["count"].tolist() == [2]
    assert list(rows(piece)) == [("b", "b")]
    assert piece.rows("nodes") == 5  # root, process, thread, b, b
    again = ProfileBuilder()
    process = again.process("train.py", pid=1)
    for count, sentence in ((4, "Full."), (5, ""), (1, "No memory.")):
        again.loss(process, "free_unknown", count, sentence)
    told = between(again.profile().tables, now).tables
    sentences = [told.strings[detail] for detail in told["losses"]["detail"].tolist()]
    assert list(zip(sentences, told["losses"]["count"].tolist(), strict=True)) == [("Full.", 4), ("No memory.", 1)]
    nothing = between(now, now).tables
    assert nothing.rows("metrics") == nothing.rows("losses") == 0 and nothing.rows("nodes") == 3


def test_numbers_that_begin_anew_are_found_by_content() -> None:
    """A writer that ran out of memory counts nodes and strings anew."""
    measured = [("a", "a", 5), ("b", "b", 7), ("a", "b", 2)]
    before, now = segment(measured, 10), segment([*reversed(measured), ("a", "a", 1)], 20)
    assert not np.array_equal(before["nodes"]["frame"], now["nodes"]["frame"])
    assert rows(between(now, before).tables) == {("a", "a"): (1, 1, 1, 1)}
