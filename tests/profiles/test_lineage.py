"""Who started whom, where pids alone would say something else."""

from leadline.profiles.build import build
from leadline.profiles.lineage import parent_rows
from leadline.profiles.profile import Profile
from leadline.report.timesplit import process_labels

CONTAINERS = """
process launcher a | pid=1 start_ns=10
process worker a | pid=7 parent_pid=1 start_ns=20
process launcher b | pid=1 start_ns=15
process worker b | pid=7 parent_pid=1 start_ns=21
"""


def test_containers_of_one_machine_share_pids() -> None:
    """Both workers are children of a process 1; the later launcher began before both."""
    drawn = build(CONTAINERS)
    names = [("m.1.1.5", ""), ("m.1.7.6", "m.1.1.5"), ("m.2.1.5", ""), ("m.2.7.6", "m.2.1.5")]
    records = [
        {
            "boot_id": "m",
            "pid": process.pid,
            "started_at_ns": process.start_ns,
            "identity": identity,
            "parent_identity": parent,
        }
        for process, (identity, parent) in zip(drawn.processes, names, strict=True)
    ]
    profile = Profile(drawn.tables, {**drawn.meta, "processes": records})
    assert parent_rows(profile) == [-1, 0, -1, 2]


def test_the_parent_is_the_program_that_the_process_was_then() -> None:
    """A process that replaced itself by exec has two rows with one identity."""
    drawn = build("""
process before | pid=3 start_ns=10
process after | pid=3 start_ns=30
process child | pid=4 parent_pid=3 start_ns=20
process grandchild | pid=5 parent_pid=3 start_ns=40
""")
    identity = {3: "m.1.3.9", 4: "m.1.4.9", 5: "m.1.5.9"}
    records = [
        {
            "pid": process.pid,
            "started_at_ns": process.start_ns,
            "identity": identity[process.pid],
            "parent_identity": identity.get(process.parent_pid, ""),
        }
        for process in drawn.processes
    ]
    profile = Profile(drawn.tables, {**drawn.meta, "processes": records})
    assert parent_rows(profile) == [-1, -1, 0, 1]


def test_files_of_earlier_releases_say_no_identity() -> None:
    drawn = build(CONTAINERS.replace("pid=1 start_ns=15", "pid=2 start_ns=15"))
    assert parent_rows(drawn) == [-1, 0, -1, 0]


def test_machines_share_pids_also_where_no_identity_is_said() -> None:
    """Records of an earlier release: each machine's worker belongs to its own machine's launcher."""
    drawn = build(CONTAINERS)
    hosts = ["a", "a", "b", "b"]
    for key in ("hostname", "boot_id"):
        records = [
            {key: host, "pid": process.pid, "started_at_ns": process.start_ns}
            for process, host in zip(drawn.processes, hosts, strict=True)
        ]
        assert parent_rows(Profile(drawn.tables, {**drawn.meta, "processes": records})) == [-1, 0, -1, 2]


def test_ranks_of_machines_that_share_pids_keep_their_children() -> None:
    """On both machines process 5 is a rank and process 6 its loader."""
    drawn = build("""
process rank 0 | pid=5 rank=0 start_ns=10
process loader | pid=6 parent_pid=5 rank=0 start_ns=20
process rank 1 | pid=5 rank=1 start_ns=11
process loader | pid=6 parent_pid=5 rank=1 start_ns=21
""")
    records = [
        {"hostname": host, "pid": process.pid, "started_at_ns": process.start_ns}
        for process, host in zip(drawn.processes, "aabb", strict=True)
    ]
    profile = Profile(drawn.tables, {**drawn.meta, "processes": records})
    assert list(process_labels(profile).values()) == ["rank 0", "rank 0 child 6", "rank 1", "rank 1 child 6"]
