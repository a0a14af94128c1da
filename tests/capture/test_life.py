"""Sessions of many processes seen from outside: jobs without a supervisor, exec, children that stay behind, full disks,
programs that are measured without their children."""

import json
import subprocess
import sys

import pytest

from leadline._package import read_part
from leadline.capture.identity import HOST_VARIABLE, ProcessIdentity

BARRIER = """
open(f"here-{os.getpid()}", "w").close()
import glob, time
while len(glob.glob("here-*")) < int(sys.argv[1]):
    time.sleep(0.01)
"""
"""Waits for all ranks, as a program does that trains on all of them."""


def test_ranks_that_start_at_once_end_in_one_file(place) -> None:
    """As `LEADLINE=x mpirun -n 8` does it: no supervisor, nobody is first."""
    place.write_work("script.py", BARRIER + "work('rank ' + os.environ['RANK'])\n")
    ranks = [
        place.start(sys.executable, "script.py", "8", env={"LEADLINE": "x.leadline", "RANK": str(rank)})
        for rank in range(8)
    ]
    said = [rank.communicate(timeout=100)[1].decode() for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * 8
    profile = place.open("x.leadline")
    assert place.regions(profile) == [f"rank {rank}" for rank in range(8)]
    assert profile.meta["complete"]
    path = place.folder / "x.leadline"
    assert sorted(filter(None, said)) == [f"leadline: wrote {path}; read it with `leadline report {path}`.\n"]
    assert not [item for item in place.folder.iterdir() if "part" in item.name or item.name.startswith(".")]


def test_ranks_of_two_machines_end_in_one_file(place) -> None:
    """The second machine is a name in the environment; everything else is as on a shared folder."""
    place.write_work("script.py", BARRIER + "work('on ' + os.environ['LEADLINE_HOST_ID'])\n")
    job = {"LEADLINE": "x.leadline", "SLURM_JOB_ID": "12", "SLURM_STEP_ID": "0"}
    ranks = [
        place.start(sys.executable, "script.py", "4", env={**job, HOST_VARIABLE: f"node{rank % 2}"})
        for rank in range(4)
    ]
    assert [rank.communicate(timeout=100) and rank.returncode for rank in ranks] == [0] * 4
    profile = place.open("x.leadline")
    assert place.regions(profile) == ["on node0"] * 2 + ["on node1"] * 2
    assert len(profile.processes) == 4
    assert {record["boot_id"] for record in profile.meta["processes"]} == {"node0", "node1"}


def test_two_supervisors_on_two_machines_write_a_file_each(place) -> None:
    """`leadline run -- torchrun` on both nodes, in one working directory."""
    place.write_work("script.py", BARRIER + "work('on ' + os.environ['LEADLINE_HOST_ID'])\n")
    command = [sys.executable, "-m", "leadline.cli.main", "run", "-q", "script.py", "2"]
    nodes = [place.start(*command, env={HOST_VARIABLE: f"node{number}"}) for number in range(2)]
    said = [node.communicate(timeout=100)[1].decode() for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0]
    assert sum("is writing" in text for text in said) == 1
    regions = [place.regions(place.open(name)) for name in ("script.leadline", "script-1.leadline")]
    assert sorted(regions) == [["on node0"], ["on node1"]]


def test_every_record_says_which_process_and_session_it_is(place) -> None:
    profile = place.measure(
        """
        import subprocess
        work("parent")
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        if os.fork() == 0:
            os._exit(0)
        os.wait()
        """
    )
    meta = place.meta()
    records = meta["processes"]
    assert {record["session"] for record in records} == {meta["session"]}
    parent = next(record for record in records if record["parent_identity"] not in {r["identity"] for r in records})
    others = [record for record in records if record is not parent]
    assert [record["parent_identity"] for record in others] == [parent["identity"]] * 2
    here = ProcessIdentity.here()
    for record in records:
        identity = ProcessIdentity.parse(record["identity"])
        assert identity is not None
        assert (identity.machine, identity.namespace, identity.pid) == (here.machine, here.namespace, record["pid"])
    starts = {(process.pid, process.start_ns) for process in profile.processes}
    assert starts == {(record["pid"], record["started_at_ns"]) for record in records}


def test_a_child_of_an_earlier_run_stays_out_of_the_next(place) -> None:
    """It goes on writing every tenth of a second, while the next run of that name lives."""
    place.write_work(
        "first.py",
        """
        import time
        if os.fork() == 0:
            for stream in (0, 1, 2):
                os.close(stream)
            work("left over")
            while not os.path.exists("stop"):
                time.sleep(0.01)
            os._exit(0)
        work("first")
        """,
    )
    place.write_work("second.py", "import time\nwork('second')\ntime.sleep(1)")
    for name in ("first", "second"):
        result = place.leadline("run", "-q", "-o", "x.leadline", "--flush-interval", "0.1", f"{name}.py")
        assert (result.returncode, result.stderr) == (0, b"")
    (place.folder / "stop").touch()
    profile = place.open("x.leadline")
    assert place.regions(profile) == ["second"]
    assert len(profile.processes) == 1
    assert profile.meta["complete"]


def test_who_outlives_its_session_stops_writing(place) -> None:
    """One loss, counted once: no snapshot is taken any more, though the flush interval comes again and again."""
    place.measure(
        """
        import time
        if os.fork() == 0:
            for stream in (0, 1, 2):
                os.close(stream)
            from leadline import _native
            failed = lambda: _native.stats()["losses"].get("write_failed", [0])[0]
            while not failed():
                time.sleep(0.01)
            flushing = _native.stats()["cost"]["flush_ns"]
            time.sleep(0.5)
            with open("written", "w") as file:
                file.write(f"{failed()} {_native.stats()['cost']['flush_ns'] - flushing}")
            os.rename("written", "child.done")
            os._exit(0)
        work("parent")
        """,
        "--flush-interval",
        "0.02",
    )
    place.wait_for("child.done")
    assert (place.folder / "child.done").read_text() == "1 0"


def test_exec_without_a_supervisor(place) -> None:
    """The last program of the process makes the file, and it says that nothing is missing."""
    place.write_work("child.py", "work('after')\n")
    place.write_work("script.py", "work('before')\nos.execlp(sys.executable, sys.executable, 'child.py')")
    result = place.python("script.py", env={"LEADLINE": "x.leadline", "LEADLINE_OPTIONS": '{"quiet": true}'})
    assert (result.returncode, result.stderr) == (0, b"")
    profile = place.open("x.leadline")
    assert place.regions(profile) == ["after", "before"]
    records = place.meta("x.leadline")["processes"]
    assert [record["exit"] for record in records] == [{"exec": True}, None]
    assert len({record["identity"] for record in records}) == 1
    assert profile.meta["complete"]
    assert not (place.folder / "x.leadline.part").exists()


def test_what_was_written_before_exec_is_the_last_word(place) -> None:
    """However long the system takes to replace the program: what its threads were seen is part of its time."""
    place.write_work("child.py", "work('after')\n")
    profile = place.measure(
        """
        import time
        sys.addaudithook(lambda event, _: time.sleep(0.5) if event == "os.exec" else None)
        work('before')
        os.execlp(sys.executable, sys.executable, 'child.py')
        """,
        "--flush-interval",
        "0.02",
        returncode=0,
    )
    record = profile.meta["processes"][0]
    assert record["exit"] == {"exec": True}
    seen = [thread for thread in profile.threads if thread.process == 0]  # its own, and those that measure it
    assert "main" in {thread.name for thread in seen}
    assert all(thread.wall_ns <= record["wall_ns"] for thread in seen)


def test_exec_of_a_program_measured_without_its_children(place) -> None:
    place.write_work("child.py", "work('after')\nimport subprocess\nsubprocess.run([sys.executable, 'other.py'])")
    place.write_work("other.py", "work('child')\n")
    profile = place.measure(
        "work('before')\nos.execlp(sys.executable, sys.executable, 'child.py')", "--no-follow", returncode=0
    )
    assert place.regions(profile) == ["after", "before"]


def test_a_failed_exec_leaves_the_process_as_it_was(place) -> None:
    """What lies on disk then is what a killed process leaves: not complete."""
    place.write_work(
        "script.py",
        """
        import glob, time
        try:
            os.execv("/no/such/program", ["x"])
        except OSError:
            work("later")
            (segment,) = glob.glob("x.leadline.part/*/*.segment")
            written = os.stat(segment).st_mtime_ns
            while os.stat(segment).st_mtime_ns == written:
                time.sleep(0.01)
            os.kill(os.getpid(), 9)
        """,
    )
    options = '{"flush_interval_s": 0.05}'
    result = place.python("script.py", env={"LEADLINE": "x.leadline", "LEADLINE_OPTIONS": options})
    assert result.returncode == -9
    (process,) = read_part(place.folder / "x.leadline.part").processes
    assert not process.complete
    assert process.record["exit"] is None
    recovered = place.leadline("recover", "x.leadline.part")
    assert recovered.returncode == 0
    recovered_profile = place.open("x.leadline")
    assert place.regions(recovered_profile) == ["later"]
    (loss,) = recovered_profile.losses
    assert "ended without stopping" in loss.detail


@pytest.mark.parametrize("way", ["run", "environment"])
def test_children_that_are_not_followed_find_nothing(place, way: str) -> None:
    place.write_work(
        "script.py",
        """
        import subprocess
        work("first")
        print(subprocess.check_output(["env"]).decode(), flush=True)
        if os.fork() == 0:
            print(os._exit.__module__, os.execv.__module__, flush=True)
            os._exit(0)
        os.wait()
        """,
    )
    if way == "run":
        result = place.leadline("run", "-q", "--no-follow", "-o", "x.leadline", "script.py")
    else:
        options = json.dumps({"follow": False, "quiet": True})
        result = place.python("script.py", env={"LEADLINE": "x.leadline", "LEADLINE_OPTIONS": options})
    assert result.returncode == 0
    text = result.stdout.decode()
    assert "LEADLINE" not in text
    assert "INJECTION" not in text
    assert text.splitlines()[-1] == "posix posix"


def test_grandchildren_of_an_unfollowed_shell_find_nothing(place) -> None:
    place.write_work("child.py", "import subprocess\nprint(subprocess.check_output(['env']).decode())")
    command = f"{sys.executable} child.py; {sys.executable} child.py"
    result = place.leadline("run", "-q", "--no-follow", "-o", "x.leadline", "--", "sh", "-c", command)
    assert b"LEADLINE" not in result.stdout


def test_modules_of_the_program_are_not_taken_for_ours(place) -> None:
    """The merge runs in a process of its own, in the program's folder: also where Python knows no safe path (3.10)."""
    for name in ("numpy", "zipfile", "leadline"):
        place.write(f"{name}.py", "raise SystemExit('the wrong module')")
    place.write("script.py", "import os, sys\nsys.path.pop(0)\nif os.fork() == 0: os._exit(0)\nos.wait()")
    result = place.python("script.py", env={"LEADLINE": "x.leadline", "LEADLINE_OPTIONS": '{"quiet": true}'})
    assert (result.returncode, result.stderr) == (0, b"")
    assert len(place.open("x.leadline").processes) == 2


def test_a_file_of_somebody_else_that_appears_meanwhile_is_kept(place) -> None:
    place.write_work("script.py", "work('a')\nopen('x.leadline', 'w').write('precious')")
    result = place.leadline("run", "-q", "-o", "x.leadline", "script.py")
    assert result.returncode == 0
    assert (place.folder / "x.leadline").read_text() == "precious"
    assert b"Will not replace" in result.stderr
    assert result.stderr.count(b"\n") == 1
    refused = place.leadline("recover", "x.leadline.part")
    assert refused.returncode == 2
    assert (place.folder / "x.leadline").read_text() == "precious"
    assert place.leadline("recover", "x.leadline.part", "-o", "x-1.leadline").returncode == 0
    assert place.regions(place.open("x-1.leadline")) == ["a"]


def test_what_any_process_could_measure_is_what_the_file_says(place) -> None:
    """A launcher that never imports the framework does not speak for its workers."""
    pytest.importorskip("torch", reason="the worker imports torch")
    place.measure("import subprocess\nsubprocess.run([sys.executable, '-c', 'import torch'], check=True)")
    meta = place.meta()
    assert [record["available"]["torch"]["ok"] for record in meta["processes"]] == [None, True]
    assert meta["available"]["torch"]["ok"] is True


MANY = """
    def many(begin):
        for number in range(begin, begin + 3000):
            work(f"region {number} of a name that is long enough to fill a file {number * 7919}")
"""


def test_room_that_comes_back_in_mid_run(place) -> None:
    """Segments are whole, so a flush that failed is made good by the next: the program goes on, nothing is missing."""
    place.write_work(
        "script.py",
        MANY
        + """
    import resource, time
    many(0)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    time.sleep(1)
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    print("ran")
    """,
    )
    result = place.leadline("run", "-q", "--flush-interval", "0.1", "script.py")
    assert (result.returncode, result.stdout, result.stderr) == (0, b"ran\n", b"")
    profile = place.open("script.leadline")
    assert len(place.regions(profile)) == 3000
    assert profile.meta["complete"]


def test_a_disk_that_fills_in_mid_run(place) -> None:
    """A small file system of its own: the program goes on, and the end is one sentence that says where things are."""
    mount = ["unshare", "--user", "--map-root-user", "--mount"]
    room = place.folder / "room"
    room.mkdir()
    try:
        subprocess.run([*mount, "mount", "-t", "tmpfs", "none", str(room)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this machine lets no user mount a file system")
    place.write_work(
        "script.py",
        MANY
        + """
    many(0)
    with open("room/filler", "wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError:
            pass
    many(3000)
    print("ran")
    """,
    )
    run = f"{sys.executable} -m leadline.cli.main run -q --flush-interval 0.2 -o room/x.leadline script.py"
    after = f"cat room/x.leadline.part/*/*.json | head -c 1; rm room/filler; {sys.executable} -m leadline.cli.main recover room/x.leadline.part -o x.leadline"
    result = place.run(*mount, "sh", "-c", f"mount -t tmpfs -o size=6m none room; {run}; echo $?; {after}")
    lines = result.stdout.decode().splitlines()
    assert lines[:2] == ["ran", "0"]
    error = result.stderr.decode()
    assert error.count("\n") == 1, error
    assert "No space left" in error
    assert "leadline recover" in error
    losses = place.open("x.leadline").losses
    assert "PROCESS_INCOMPLETE" in [loss.kind.name for loss in losses]


@pytest.mark.parametrize("written", [True, False])
def test_children_that_run_on_do_not_make_a_run_that_did_not_end_in_order(place, written: bool) -> None:
    place.write(
        "script.py",
        f"""
        import leadline, os, pathlib, time
        here, there = os.pipe(), os.pipe()
        with leadline.profile("out.leadline", flush_interval_s={0.02 if written else 1000}):
            with leadline.region("parent"):
                pass
            child = os.fork()
            if child == 0:
                with leadline.region("child"):
                    pass
                os.write(there[1], b"x")
                os.read(here[0], 1)
                os._exit(0)
            os.read(there[0], 1)
            while {written} and not list(pathlib.Path("out.leadline.part").rglob(f"{{child}}-*.segment")):
                time.sleep(0.01)
        os.write(here[1], b"x")
        os.waitpid(child, 0)
        """,
    )
    result = place.python("script.py")
    assert result.returncode == 0, result.stderr
    profile = place.open("out.leadline")
    assert profile.meta["complete"]
    told = [one.detail for one in profile.losses if one.kind.name == "PROCESS_INCOMPLETE"]
    assert len(told) == 1 and "was still running when measuring ended" in told[0]
    assert ("had written nothing yet" in told[0]) != written
    regions = {node.name for node in profile.tree.find(kind="region")}
    assert regions >= {"parent"} and ("child" in regions) <= written
