"""Signals under a supervisor reach the program as often as without one, whoever sends them to whom."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

LEADLINE = (sys.executable, "-m", "leadline.cli.main", "run", "-q", "-o", "x.leadline")

COUNTS = """
    import os, signal, sys
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    open("ready", "w").close()
    received = []
    while True:
        number = signal.sigwaitinfo(signal.valid_signals() - {signal.SIGCHLD, signal.SIGCONT}).si_signo
        if number == signal.SIGRTMAX:
            break
        received.append(int(number))
    open("part", "w").write(repr(received))
    os.rename("part", "received")
    sys.exit(5)
"""
"""Counts signals as the kernel delivers them, until SIGRTMAX: the last of all that are pending together."""

ALL = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGALRM, signal.SIGRTMIN, 40, 63]


@pytest.fixture
def supervised(place):
    """The program under a supervisor, leader of a group of its own."""
    place.write("script.py", COUNTS)
    process = place.start("setsid", *LEADLINE, "script.py")
    place.wait_for("ready")
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def finished(place, process) -> list[int]:
    """What the program has received, when it has been told to end."""
    os.kill(process.pid, signal.SIGRTMAX)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (5, b"")
    return received(place)


def received(place) -> list[int]:
    place.wait_for("received")
    return json.loads((place.folder / "received").read_text())


def members(group: int) -> list[int]:
    """The processes of a group."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int((folder / "stat").read_text().rpartition(")")[2].split()[2]) == group:
                found.append(int(folder.name))
        except OSError:
            continue
    return sorted(found)


@pytest.mark.parametrize("number", ALL)
def test_a_signal_to_the_group_reaches_the_program_once(place, supervised, number: int) -> None:
    os.killpg(supervised.pid, number)
    assert finished(place, supervised) == [number]


@pytest.mark.parametrize("number", ALL)
def test_a_signal_to_the_supervisor_alone_reaches_the_program_once(place, supervised, number: int) -> None:
    os.kill(supervised.pid, number)
    assert finished(place, supervised) == [number]


@pytest.mark.parametrize("reverse", [False, True])
def test_a_signal_to_every_process_in_turn_reaches_the_program_once(place, supervised, reverse: bool) -> None:
    """As Slurm sends SIGUSR1 some time before a job's end, and systemd SIGTERM."""
    for pid in sorted(members(supervised.pid), reverse=reverse):
        os.kill(pid, signal.SIGUSR1)
    assert finished(place, supervised) == [signal.SIGUSR1]


def test_both_kinds_after_each_other(place, supervised) -> None:
    for _ in range(3):
        os.killpg(supervised.pid, 41)
        os.kill(supervised.pid, 42)
    assert sorted(finished(place, supervised)) == [41, 41, 41, 42, 42, 42]


def test_timeout_sends_as_many_as_without_us(place) -> None:
    """GNU timeout signals its child and then its group. Real-time signals queue, so the count is exact."""
    place.write(
        "script.py",
        """
        import signal
        signal.pthread_sigmask(signal.SIG_BLOCK, {40})
        if signal.sigtimedwait({40}, 30):
            print("one", flush=True)
            if signal.sigtimedwait({40}, 1):
                print("two", flush=True)
        """,
    )
    plain = place.run("timeout", "-s", "40", "2", sys.executable, "script.py")
    measured = place.run("timeout", "-s", "40", "4", *LEADLINE, "script.py")
    assert plain.stdout == measured.stdout
    assert plain.stdout.startswith(b"one\n")


def test_a_program_that_left_the_group_gets_what_the_group_gets(place) -> None:
    place.write("script.py", "\n    import os\n    os.setpgid(0, 0)" + COUNTS)
    process = place.start("setsid", *LEADLINE, "script.py")
    place.wait_for("ready")
    os.killpg(process.pid, signal.SIGUSR1)
    assert finished(place, process) == [signal.SIGUSR1]


def test_a_hang_up_reaches_the_program_once(place) -> None:
    """The terminal goes away: the session's leader dies of it, and the kernel tells the foreground group."""
    place.write("script.py", COUNTS)
    leader, follower = os.openpty()
    begin = (
        "import os, fcntl, termios, sys, signal; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        "signal.signal(signal.SIGTTOU, signal.SIG_IGN); "
        "pid = os.posix_spawn(sys.executable, [sys.executable, *sys.argv[1:]], os.environ, setpgroup=0, "
        "setsigdef=[signal.SIGTTOU]); "
        "os.tcsetpgrp(0, pid); open('pid', 'w').write(str(pid)); os.rename('pid', 'supervisor'); "
        "os.waitpid(pid, 0)"
    )
    process = place.start(sys.executable, "-c", begin, *LEADLINE[1:], "script.py", stdin=follower)
    os.close(follower)
    place.wait_for("ready")
    place.wait_for("supervisor")
    os.close(leader)
    assert process.wait(60) == -signal.SIGHUP
    os.kill(int((place.folder / "supervisor").read_text()), signal.SIGRTMAX)
    assert received(place) == [signal.SIGHUP]
    process.communicate(timeout=60)


def test_a_witness_that_somebody_killed_is_missed_by_nobody(place, supervised) -> None:
    """Then the supervisor knows less, and passes on what it gets."""
    own = {supervised.pid}
    command = Path(f"/proc/{supervised.pid}/cmdline").read_bytes()
    for pid in set(members(supervised.pid)) - own:
        if Path(f"/proc/{pid}/cmdline").read_bytes() == command:
            os.kill(pid, signal.SIGKILL)
            own.add(pid)
    assert len(own) == 2
    os.kill(supervised.pid, signal.SIGUSR1)
    assert finished(place, supervised) == [signal.SIGUSR1]


def test_nothing_of_ours_outlives_the_supervisor(place) -> None:
    place.write("script.py", "import os; open('group', 'w').write(str(os.getpgrp())); os.kill(os.getppid(), 9)")
    process = place.start("setsid", *LEADLINE, "script.py")
    process.communicate(timeout=60)
    group = int((place.folder / "group").read_text())
    while members(group):
        os.sched_yield()


@pytest.mark.parametrize("number", [signal.SIGRTMIN, 40, 63, signal.SIGRTMAX])
def test_a_program_that_dies_of_a_real_time_signal_leaves_its_profile(place, number: int) -> None:
    place.write_work("script.py", f"work('a')\nos.kill(os.getpid(), {int(number)})")
    result = place.run(*LEADLINE, "--flush-interval", "0.1", "script.py")
    assert (result.returncode, result.stderr) == (-number, b"")
    assert place.open("x.leadline").processes
    assert place.meta("x.leadline")["exit"] == {"signal": f"SIGRTMIN+{number - signal.SIGRTMIN}"}
