"""Beginning a session: who makes it, who joins, whom nobody may disturb. Processes are real, the other machine is a
name in the environment."""

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from tests.capture.killing import Kill, at_a_call, at_a_system_call, may_trace

from leadline._package import read_part
from leadline.capture.claim import LOCK_FILE, Claim, claim, leave
from leadline.capture.config import Options
from leadline.capture.identity import HOST_VARIABLE, Life, ProcessIdentity
from leadline.capture.part import PartDirectory
from leadline.capture.records import StartedBy

CLAIMS = """
import sys
from functools import partial
from pathlib import Path
from leadline.capture.claim import claim
from leadline.capture.config import Options
from leadline.capture.records import StartedBy
claimed = claim(Path(sys.argv[1]), ["x.py"], Options(), StartedBy(sys.argv[2]))
print(claimed.part.folder, claimed.joined, flush=True)
sys.stdin.read()
"""
"""Claims, says what it has got, and lives until its input ends."""


def begin(output: Path, started_by: StartedBy = StartedBy.SUPERVISOR) -> Claim:
    return claim(output, ["train.py", "--lr", "3"], Options(), started_by)


def test_the_session_file_says_what_was_asked(tmp_path: Path) -> None:
    part = begin(tmp_path / "a.leadline").part
    session = read_part(part.directory).session
    assert part.directory == tmp_path / "a.leadline.part"
    assert session["id"] == part.session_id
    assert session["argv"] == ["train.py", "--lr", "3"]
    assert session["output"] == str(tmp_path / "a.leadline")
    assert session["asked"]["memory"] is True
    assert session["started_by"] == "supervisor"
    assert [path.name for path in tmp_path.iterdir()] == ["a.leadline.part"]


def test_the_end_of_the_session_is_noted(tmp_path: Path) -> None:
    part = begin(tmp_path / "a.leadline").part
    assert leave(part, {"code": 3})
    session = read_part(part.directory).session
    assert session["exit"] == {"code": 3}
    assert session["ended_at_ns"] >= session["started_at_ns"]
    assert session["argv"] == ["train.py", "--lr", "3"]


def test_a_running_measurement_keeps_its_name(tmp_path: Path) -> None:
    output = tmp_path / "a.leadline"
    first = begin(output)
    second = begin(output)
    assert first.part.exists
    assert second.part.output == tmp_path / "a-1.leadline"
    assert second.sentences == (
        f"another measurement is writing {output}, so this measurement goes to {tmp_path / 'a-1.leadline'}.",
    )
    assert begin(output).part.output == tmp_path / "a-2.leadline"


def test_the_remains_of_a_dead_one_are_kept_beside(tmp_path: Path) -> None:
    output = tmp_path / "a.leadline"
    for number in (1, 2):
        with Claimer(output, StartedBy.SUPERVISOR) as dead:
            dead.kill()
        aside = tmp_path / f"a-{number}.leadline.part"
        claimed = begin(output)
        assert claimed.sentences == (
            f"an unfinished measurement was moved to {aside}; `leadline recover {aside}` makes its file.",
        )
        assert (aside / dead.folder.name / "session.json").exists()
        assert claimed.part.output == output
        claimed.part.remove()


def test_remains_of_the_first_format_and_folders_of_others_are_kept_too(tmp_path: Path) -> None:
    (tmp_path / "a.leadline.part").mkdir()
    (tmp_path / "a.leadline.part" / "session.json").write_text('{"format": 1, "owner": "1-1"}')
    claimed = begin(tmp_path / "a.leadline")
    assert (tmp_path / "a-1.leadline.part" / "session.json").exists()
    assert claimed.part.exists


def test_one_claim_per_session(tmp_path: Path) -> None:
    """And for the programs that a process becomes by exec it stays theirs."""
    part = begin(tmp_path / "a.leadline").part
    again = f"from pathlib import Path; from leadline.capture.part import PartDirectory as P; print(P.join(Path({str(part.folder)!r}), Path()).claim('first'))"
    assert [part.claim("first"), part.claim("first")] == [True, True]
    assert subprocess.check_output([sys.executable, "-c", again]) == b"False\n"


def test_joining_a_session_that_has_ended(tmp_path: Path) -> None:
    part = begin(tmp_path / "a.leadline").part
    assert PartDirectory.join(part.folder, part.output) == part
    part.remove()
    assert PartDirectory.join(part.folder, part.output) is None
    assert list(tmp_path.iterdir()) == []


def test_a_later_session_of_the_same_name_is_not_joined(tmp_path: Path) -> None:
    """Who outlives a session finds nothing of the next one under the path that it knows."""
    first = begin(tmp_path / "a.leadline").part
    first.remove()
    second = begin(tmp_path / "a.leadline").part
    assert second.directory == first.directory
    assert PartDirectory.join(first.folder, first.output) is None
    assert not first.exists
    with pytest.raises(OSError, match="No such file"):
        first.segment("1-1").write_bytes(b"late")
    first.remove()
    assert second.exists


class Claimer:
    """A process that claims and then waits."""

    def __init__(self, output: Path, started_by: StartedBy, **environment: str) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", CLAIMS, str(output), started_by.value],
            env={**clean, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> "Claimer":
        assert self.process.stdout is not None
        folder, joined = self.process.stdout.readline().decode().split()
        self.folder, self.joined = Path(folder), joined == "True"
        return self

    def __exit__(self, *error: object) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def kill(self) -> None:
        """As a scheduler or the kernel does."""
        self.process.kill()
        self.process.wait()


def test_processes_of_one_job_that_start_at_once_share_a_session(tmp_path: Path) -> None:
    """Eight of them, many times: one makes it, the others join, whoever comes first."""
    for turn in range(3):
        output = tmp_path / f"{turn}.leadline"
        claimers = [Claimer(output, StartedBy.ENVIRONMENT) for _ in range(8)]
        try:
            folders = [claimer.__enter__().folder for claimer in claimers]
            assert len(set(folders)) == 1
            assert [claimer.joined for claimer in claimers].count(False) == 1
            part = PartDirectory.join(folders[0], output)
            assert part is not None
            assert len(part.roots()) == 8
        finally:
            for claimer in claimers:
                claimer.__exit__()
    assert not (tmp_path / LOCK_FILE).exists()


def test_supervisors_that_start_at_once_get_a_session_each(tmp_path: Path) -> None:
    output = tmp_path / "a.leadline"
    claimers = [Claimer(output, StartedBy.SUPERVISOR) for _ in range(8)]
    try:
        folders = {claimer.__enter__().folder for claimer in claimers}
        names = {folder.parent.name for folder in folders}
        assert names == {"a.leadline.part", *(f"a-{number}.leadline.part" for number in range(1, 8))}
    finally:
        for claimer in claimers:
            claimer.__exit__()


def test_two_machines_on_one_folder_keep_apart(tmp_path: Path) -> None:
    """Without a launcher that says that they are one job, two machines write a file each."""
    output = tmp_path / "a.leadline"
    with Claimer(output, StartedBy.ENVIRONMENT, **{HOST_VARIABLE: "other"}) as other:
        mine = begin(output, StartedBy.ENVIRONMENT)
        assert not mine.joined
        assert mine.part.output == tmp_path / "a-1.leadline"
        assert other.folder.is_dir()
        root = next(iter(PartDirectory(other.folder.parent, other.folder.name, output).roots()))
        assert root.life() is Life.UNKNOWN


def test_two_machines_of_one_job_share_a_session(tmp_path: Path) -> None:
    output = tmp_path / "a.leadline"
    job = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}
    with (
        Claimer(output, StartedBy.ENVIRONMENT, **job, **{HOST_VARIABLE: "one"}) as one,
        Claimer(output, StartedBy.ENVIRONMENT, **job, **{HOST_VARIABLE: "two"}) as two,
        Claimer(output, StartedBy.ENVIRONMENT, SLURM_JOB_ID="8", **{HOST_VARIABLE: "two"}) as third,
    ):
        assert one.folder == two.folder
        assert (one.joined, two.joined, third.joined) == (False, True, False)
        assert third.folder.parent.name == "a-1.leadline.part"


def test_a_machine_that_has_been_silent_for_long_is_given_up(tmp_path: Path) -> None:
    output = tmp_path / "a.leadline"
    with Claimer(output, StartedBy.SUPERVISOR, **{HOST_VARIABLE: "other"}) as other:
        other.kill()
        for path in (other.folder, *other.folder.iterdir()):
            os.utime(path, (time.time() - 3600,) * 2)
        claimed = begin(output)
        assert claimed.part.output == output
        assert (tmp_path / "a-1.leadline.part" / other.folder.name).is_dir()


def test_the_last_root_makes_the_file(tmp_path: Path) -> None:
    output = tmp_path / "a.leadline"
    with Claimer(output, StartedBy.ENVIRONMENT) as other:
        mine = begin(output, StartedBy.ENVIRONMENT)
        assert mine.joined
        assert not leave(mine.part, None)
        again = begin(output, StartedBy.ENVIRONMENT)
        assert again.joined
        other.kill()
        assert leave(again.part, None), "a root that was killed is not waited for"
        late = begin(output, StartedBy.ENVIRONMENT)
        assert not late.joined, "nobody joins while the file is being made"


def test_a_process_number_used_again_is_another_process() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    alive = ProcessIdentity.of(child.pid)
    assert alive is not None
    assert alive.life() is Life.ALIVE
    assert ProcessIdentity.parse(str(alive)) == alive
    earlier = ProcessIdentity(alive.machine, alive.namespace, alive.pid, alive.start_ticks - 1)
    assert earlier.life() is Life.GONE
    assert child.stdin is not None
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert alive.life() is Life.GONE, "ended, though nobody has waited for it yet"
    child.wait()
    assert ProcessIdentity.of(child.pid) is None


def test_a_pid_of_another_container_says_nothing(tmp_path: Path) -> None:
    unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    try:
        subprocess.run([*unshare, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this machine lets no user make a process namespace")
    output = tmp_path / "a.leadline"
    claimer = subprocess.Popen(
        [*unshare, sys.executable, "-c", CLAIMS, str(output), "environment"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert claimer.stdout is not None
    assert claimer.stdin is not None
    folder = Path(claimer.stdout.readline().decode().split()[0])
    (root,) = PartDirectory(folder.parent, folder.name, output).roots()
    assert root.machine == ProcessIdentity.here().machine
    assert root.namespace != ProcessIdentity.here().namespace
    assert root.life() is Life.UNKNOWN
    assert begin(output, StartedBy.SUPERVISOR).part.output == tmp_path / "a-1.leadline"
    claimer.stdin.close()
    claimer.stdout.close()
    assert claimer.wait() == 0


@pytest.fixture(params=[at_a_call, at_a_system_call], ids=["call", "system call"])
def until_killed(request: pytest.FixtureRequest) -> Kill:
    if request.param is at_a_system_call and not may_trace():
        pytest.skip("this machine lets no process trace its children")
    return request.param


def test_killed_at_any_step_of_the_claim(tmp_path: Path, until_killed: Kill) -> None:
    """Before it, an unfinished measurement lies there; the next claim must work and keep it, whatever came between."""
    for step in range(100_000):
        folder = tmp_path / str(step)
        folder.mkdir()
        output = folder / "a.leadline"
        dead = make_dead_session(output)
        killed = until_killed(partial(begin, output), step)
        next_one = begin(output)
        assert next_one.part.output == output
        assert next_one.part.is_root()
        next_one.part.remove()
        assert len(list(folder.glob(f"*/{dead}/session.json"))) == 1, "what another session left is still there"
        assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
        if not killed:
            break
    assert step > 30


def test_killed_at_any_step_of_the_end(tmp_path: Path, until_killed: Kill) -> None:
    """Then what was measured is in the file or in the part directory, and the next claim works."""
    for step in range(100_000):
        folder = tmp_path / str(step)
        folder.mkdir()
        output = folder / "a.leadline"
        measured = tmp_path / f"{step}.measured"

        def session(output: Path = output, measured: Path = measured) -> None:
            part = begin(output).part
            part.segment("1-1-x").write_bytes(b"measured")
            measured.touch()
            if leave(part, None):
                os.link(part.segment("1-1-x"), output)
                part.remove()

        killed = until_killed(session, step)
        made = output.exists()
        assert made or not measured.exists() or len(list(folder.glob("*.part/*/1-1-x.segment"))) == 1
        output.unlink(missing_ok=True)
        next_one = begin(output)
        assert next_one.part.output == output
        next_one.part.remove()
        assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
        if not killed:
            assert made
            break
    assert step > 20


def make_dead_session(output: Path) -> str:
    """What a killed session leaves; returns its id."""
    pid = os.fork()
    if pid == 0:
        begin(output)
        os._exit(0)
    os.waitpid(pid, 0)
    (part,) = output.parent.iterdir()
    (folder,) = part.iterdir()
    return folder.name
