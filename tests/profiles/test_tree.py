"""What a user reads from a profile: nodes, paths, measurements, finding, and the tree turned over."""

import statistics

import pytest

from leadline.profiles.build import build
from leadline.profiles.profile import Profile
from leadline.schema import LossKind


@pytest.fixture
def profile() -> Profile:
    return build(
        """
        process train.py | pid=7 rank=1
          thread MainThread | tid=7 wall_ns=100 operator_ns=60
            python main @ train.py:3 | first_line=1
              module model.fc [Linear]
                operator aten::linear #linear | time=5,7 call_time=9,11
                  operator aten::linear | time=4 call_time=4
                  kernel sgemm @ gemm.cu:12 | gpu_time@0:7=100,50 gpu_time@1:7=30 detail={"grid":[1,2]}
            python main @ train.py:5
              operator aten::add | time=30/3 call_time=30/3
        """,
        losses=[("events_dropped", 3, "The trace window was full.")],
        events="""
        start_ns duration_ns kind     node   thread device
        20       5           kernel   linear -1     0
        10       9           operator linear 0      -1
        """,
    )


def test_walk_is_depth_first_with_parents_before_children(profile: Profile) -> None:
    names = [(node.kind, node.name, node.line) for node in profile.tree.walk()]
    assert names == [
        ("root", "root", 0),
        ("process", "train.py", 0),
        ("thread", "MainThread", 0),
        ("python", "main", 3),
        ("module", "model.fc", 0),
        ("operator", "aten::linear", 0),
        ("operator", "aten::linear", 0),
        ("kernel", "sgemm", 12),
        ("python", "main", 5),
        ("operator", "aten::add", 0),
    ]


def test_a_node_knows_its_place_and_its_frame(profile: Profile) -> None:
    (kernel,) = profile.tree.find(kind="kernel")
    assert [node.name for node in kernel.path()] == [
        "root",
        "train.py",
        "MainThread",
        "main",
        "model.fc",
        "aten::linear",
        "sgemm",
    ]
    assert (kernel.file, kernel.line, kernel.detail) == ("gemm.cu", 12, {"grid": [1, 2]})
    assert kernel.parent is not None
    assert kernel in kernel.parent.children
    assert kernel.parent.parent is not None
    assert kernel.parent.parent.module == "Linear"
    assert profile.tree.root.parent is None
    assert profile.tree.find(name="main")[0].first_line == 1


def test_exclusive_has_all_moments(profile: Profile) -> None:
    outer = profile.tree.find(name="aten::linear")[0]
    stat = outer.exclusive("call_time")
    assert (stat.count, stat.sum, stat.min, stat.max, stat.mean, stat.std) == (2, 20, 9, 11, 10.0, 1.0)
    nothing = outer.exclusive("alloc_bytes")
    assert (nothing.count, nothing.sum, nothing.min, nothing.max, nothing.mean, nothing.std) == (0, 0, 0, 0, 0.0, 0.0)


def test_inclusive_is_the_subtree(profile: Profile) -> None:
    root = profile.tree.root.inclusive("time")
    assert (root.count, root.sum, root.min, root.max) == (6, 46, 4, 10)
    assert profile.tree.find(kind="module")[0].inclusive("time").sum == 16
    assert root.std == pytest.approx(statistics.pstdev([5, 7, 4, 10, 10, 10]))


def test_devices_and_streams_are_kept_apart(profile: Profile) -> None:
    (kernel,) = profile.tree.find(kind="kernel")
    assert kernel.exclusive("gpu_time").sum == 180
    assert kernel.exclusive("gpu_time", device=0).sum == 150
    assert kernel.exclusive("gpu_time", device=1, stream=7).sum == 30
    assert kernel.exclusive("gpu_time", stream=8).count == 0
    assert profile.tree.root.inclusive("gpu_time", device=1).sum == 30
    assert profile.tree.root.inclusive("time", device=-1).sum == 46


def test_rolling_up_what_does_not_add_up_is_refused(profile: Profile) -> None:
    with pytest.raises(ValueError, match="call_time is not additive"):
        profile.tree.root.inclusive("call_time")


def test_wall_time_can_still_be_asked_for_by_its_former_name(profile: Profile) -> None:
    root = profile.tree.root
    assert root.inclusive("cpu_time") == root.inclusive("time")
    assert str(profile.tree.measured[0].kind) == "time"


def test_unknown_names_are_refused_with_the_known_ones(profile: Profile) -> None:
    with pytest.raises(ValueError, match=r"no metric called 'cputime'.*time"):
        profile.tree.root.exclusive("cputime")
    with pytest.raises(ValueError, match=r"no frame kind called 'op'.*operator"):
        profile.tree.find(kind="op")
    with pytest.raises(KeyError, match=r"no table called 'node'.*nodes"):
        profile.table("node")
    with pytest.raises(IndexError, match="no node 99"):
        profile.tree.node(99)


def test_find_by_exact_name_or_by_pattern(profile: Profile) -> None:
    assert [node.row for node in profile.tree.find(kind="operator", name="aten::linear")] == [5, 6]
    assert profile.tree.find(name="aten") == []
    assert profile.tree.find(kind="python", name="aten::linear") == []
    assert [node.name for node in profile.tree.find(pattern="^aten::(add|linear)$")] == [
        "aten::linear",
        "aten::linear",
        "aten::add",
    ]
    assert [node.name for node in profile.tree.find(kind="kernel", pattern="gemm")] == ["sgemm"]


def test_the_nearest_of_a_kind_is_on_the_path(profile: Profile) -> None:
    (kernel,) = profile.tree.find(kind="kernel")
    assert [kernel.nearest(kind).name for kind in ("kernel", "operator", "module", "thread")] == [
        "sgemm",
        "aten::linear",
        "model.fc",
        "MainThread",
    ]
    assert kernel.nearest("phase") is None


def test_the_hottest_nodes_spent_most_themselves(profile: Profile) -> None:
    assert [node.name for node in profile.tree.hottest(top=2)] == ["aten::add", "aten::linear"]
    assert [node.row for node in profile.tree.hottest()] == [9, 5, 6]
    assert profile.tree.hottest("alloc_bytes") == []


def test_bottom_up_counts_recursion_once_and_leads_to_the_callers(profile: Profile) -> None:
    top = profile.tree.bottom_up()
    assert [(view.name, view.stat.sum) for view in top.children] == [("aten::add", 30), ("aten::linear", 16)]
    linear = top.children[1]
    assert [(view.kind, view.name, view.stat.sum) for view in linear.children] == [
        ("module", "model.fc", 12),
        ("operator", "aten::linear", 4),
    ]
    outermost = linear.children[1].children[0].children[0].children[0].children[0]
    assert [view.name for view in outermost.path()] == [
        "aten::linear",
        "aten::linear",
        "model.fc",
        "main",
        "MainThread",
        "train.py",
    ]
    assert outermost.children == []
    assert [view.name for view in profile.tree.bottom_up("gpu_time", kind="kernel").children] == ["sgemm"]
    assert profile.tree.bottom_up("alloc_bytes").children == []


def test_small_tables_are_objects(profile: Profile) -> None:
    (process,) = profile.processes
    assert (process.pid, process.rank, process.complete, process.node.name) == (7, 1, True, "train.py")
    (thread,) = profile.threads
    assert (thread.tid, thread.wall_ns, thread.operator_ns, thread.process) == (7, 100, 60, 0)
    assert [device.name for device in profile.devices] == ["GPU 0", "GPU 1"]
    (loss,) = profile.losses
    assert (loss.kind, loss.count, loss.detail) == (LossKind.EVENTS_DROPPED, 3, "The trace window was full.")


def test_events_come_by_start_and_may_be_absent(profile: Profile) -> None:
    assert profile.events["start_ns"].tolist() == [10, 20]
    assert profile.events["correlation"].tolist() == [0, 0]
    assert len(build("operator aten::add").events["start_ns"]) == 0


def test_columns_are_numpy_arrays_of_the_schema(profile: Profile) -> None:
    nodes = profile.table("nodes")
    assert nodes["parent"].tolist() == [-1, 0, 1, 2, 3, 4, 5, 5, 2, 8]
    assert nodes["parent"].dtype.str == "<i4"
