"""Ends: however a process ends, what it measured is in the file, or the file says that it is not whole."""

import os
import signal
import subprocess
import sys

import pytest

from leadline.capture.config import VARIABLES


def test_a_child_that_is_killed_is_said_to_be_incomplete(place) -> None:
    profile = place.measure(
        """
        import signal
        work("parent")
        pid = os.fork()
        if pid == 0:
            work("child")
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(pid, 0)
        """,
    )
    assert "parent" in place.regions(profile)
    assert not profile.meta["complete"]
    assert [loss.kind.name for loss in profile.losses] == ["PROCESS_INCOMPLETE"]


def test_a_child_that_outlives_its_parent(place) -> None:
    """The file does not wait for it and says that it had not ended; the child notices nothing."""
    profile = place.measure(
        """
        read, write = os.pipe()
        if os.fork() == 0:
            os.close(write)
            for stream in (0, 1, 2):
                os.close(stream)
            os.read(read, 1)  # until the last writer, the parent, is gone
            while os.path.exists("script.leadline.part"):
                pass
            work("too late")
            open("child.done", "w").close()
            sys.exit(0)
        work("parent")
        """,
    )
    assert place.regions(profile) == ["parent"]
    assert [loss.kind.name for loss in profile.losses] == ["PROCESS_INCOMPLETE"]
    place.wait_for("child.done")
    place.wait_for("script.leadline.part", gone=True)


def test_a_killed_program_leaves_a_profile(place) -> None:
    profile = place.measure(
        """
        import signal, time
        work("early")
        time.sleep(0.5)  # longer than the flush interval
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        "--flush-interval",
        "0.1",
        returncode=-signal.SIGKILL,
    )
    assert place.regions(profile) == ["early"]
    assert not profile.meta["complete"]


def test_a_killed_supervisor_leaves_what_recover_needs(place) -> None:
    place.write_work("script.py", "work('a')\nos.kill(os.getppid(), 9)\ninput()")
    command = [sys.executable, "-m", "leadline.cli.main", "run", "-q", "script.py"]
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    process = subprocess.Popen(
        command, cwd=place.folder, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    assert process.wait(60) == -signal.SIGKILL
    assert process.stdin is not None
    process.stdin.close()  # the program gets EOFError and ends in order
    assert b"EOFError" in process.stderr.read()
    result = place.leadline("recover", "script.leadline.part")
    assert result.returncode == 0, result.stderr
    assert place.regions(place.open("script.leadline")) == ["a"]


def test_out_of_memory(place) -> None:
    """An address space that fills up: the program's MemoryError is the program's end, and the profile is there."""
    profile = place.measure(
        """
        import resource
        work("before")
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), -1))
        try:
            blocks = [bytearray(8 << 20) for _ in range(100)]
        except MemoryError:
            work("after")
            sys.exit(6)
        """,
        returncode=6,
    )
    assert place.regions(profile) == ["after", "before"]


def test_threads_that_outlive_main(place) -> None:
    profile = place.measure(
        """
        import threading, time
        def late():
            threading.main_thread().join()
            work("late")
        threading.Thread(target=late).start()
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        work("main")
        """,
    )
    assert place.regions(profile) == ["late", "main"]


def test_exit_handlers_of_the_program_are_measured(place) -> None:
    profile = place.measure("import atexit\natexit.register(work, 'at exit')")
    assert place.regions(profile) == ["at exit"]


def test_an_exception_is_noted(place) -> None:
    place.write_work("script.py", "work('a')\nraise LookupError('x')")
    assert place.leadline("run", "-q", "script.py").returncode == 1
    profile = place.open("script.leadline")
    assert profile.meta["complete"]
    assert place.meta()["exit"] == {"code": 1}
    assert place.meta()["processes"][0]["exit"] == {"exception": "LookupError"}


TERMINATED = """
    import signal, threading
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    work("main")
    threading.Thread(target=work, args=("thread",)).start()
    {}
    import time
    time.sleep(1000)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_program_ended_by_a_signal_is_whole(place, number: signal.Signals) -> None:
    """Nothing is lost, though the flush interval is far longer than the program lived."""
    profile = place.measure(
        TERMINATED.format(f"os.kill(os.getpid(), {int(number)})"),
        "--flush-interval",
        "1000",
        returncode=-number,
    )
    assert place.regions(profile) == ["main", "thread"]
    assert profile.meta["complete"]
    assert list(profile.losses) == []


def test_a_handler_of_the_program_replaces_ours(place) -> None:
    profile = place.measure(
        """
        import signal
        assert signal.signal(signal.SIGTERM, lambda number, frame: work("handler")) == signal.SIG_DFL
        os.kill(os.getpid(), signal.SIGTERM)
        sys.exit(4)
        """,
        returncode=4,
    )
    assert place.regions(profile) == ["handler"]


def test_an_ignored_signal_stays_ignored(place) -> None:
    program = "import os, signal; os.kill(os.getpid(), signal.SIGHUP); print('alive')"
    place.write("script.py", program)
    result = place.run("sh", "-c", f"trap '' HUP; {sys.executable} -m leadline.cli.main run -q script.py")
    assert (result.returncode, result.stdout, result.stderr) == (0, b"alive\n", b"")


def test_a_child_that_nobody_follows_dies_of_the_signal_at_once(place) -> None:
    """A fork behind Python's back has no flush thread: the handler that it inherits must not swallow the signal."""
    profile = place.measure(
        """
        import ctypes, signal, time
        libc = ctypes.CDLL(None)
        pid = libc.fork()
        if pid == 0:
            while True:
                time.sleep(1000)
        os.kill(pid, signal.SIGTERM)
        assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGTERM
        work("parent")
        """,
    )
    assert place.regions(profile) == ["parent"]


REGIONS = """
    for number in range(3000):
        work(f"region {number} of a name that is long enough to fill a file {number * 7919}")
    print("ran")
"""


def test_a_limit_on_file_sizes_is_said_at_the_start(place) -> None:
    """A program of hours must not run for a profile that could not be written."""
    place.write_work("script.py", REGIONS)
    result = place.run("sh", "-c", f"ulimit -f 40; {sys.executable} -m leadline.cli.main run -q script.py")
    assert (result.returncode, result.stdout) == (2, b"")
    error = result.stderr.decode()
    assert error.startswith("leadline: Cannot write ") and error.endswith("raise the limit (ulimit -f).\n")
    assert error.count("\n") == 1


def test_a_part_directory_that_somebody_removed(place) -> None:
    place.write_work("script.py", "import shutil\nwork('a')\nshutil.rmtree('script.leadline.part')\nsys.exit(3)")
    result = place.leadline("run", "-q", "script.py")
    assert result.returncode == 3
    assert result.stderr.decode() == (
        f"leadline: The profile was not written: {place.folder / 'script.leadline.part'} was removed.\n"
    )


@pytest.mark.parametrize("closed", ["2>&-", ">&-", ">&- 2>&- <&-"])
def test_closed_streams(place, closed: str) -> None:
    place.write_work("script.py", "work('a')\nsys.exit(3)")
    result = place.run("sh", "-c", f"{sys.executable} -m leadline run script.py {closed}")
    assert result.returncode == 3
    assert place.regions(place.open("script.leadline")) == ["a"]


def test_a_run_inside_a_run(place) -> None:
    """The inner run's program belongs to the inner file, the inner supervisor to the outer one."""
    place.write_work("script.py", "work('a')")
    command = [sys.executable, "-m", "leadline", "run", "-q", "-o", "inner.leadline", "script.py"]
    result = place.leadline("run", "-q", "-o", "outer.leadline", "--", *command)
    assert (result.returncode, result.stderr) == (0, b"")
    assert place.regions(place.open("inner.leadline")) == ["a"]
    assert place.regions(place.open("outer.leadline")) == []


def test_sub_interpreters_do_not_disturb(place) -> None:
    profile = place.measure(
        """
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        work("before")
        inner = interpreters.create()
        interpreters.run_string(inner, "import leadline\\nwith leadline.region('inside'): print('ran')")
        interpreters.destroy(inner)
        work("after")
        """
    )
    assert place.regions(profile) == ["after", "before"]
    assert profile.meta["complete"]


def test_a_signal_after_a_fork_is_answered_as_before_it(place) -> None:
    """The thread that writes the last segment rests during a fork and must come back, whichever thread forks."""
    profile = place.measure(
        """
        import signal, threading, warnings
        warnings.simplefilter("ignore")  # Python 3.12 and later warn of a fork in a program with threads, which this is
        def fork():
            if os.fork() == 0:
                os._exit(0)
            os.wait()
        for thread in (threading.Thread(target=fork), threading.Thread(target=fork)):
            thread.start()
            thread.join()
        fork()
        work("after")
        os.kill(os.getpid(), signal.SIGTERM)
        import time
        time.sleep(1000)
        """,
        "--flush-interval",
        "1000",
        returncode=-signal.SIGTERM,
    )
    assert place.regions(profile) == ["after"]
    assert profile.meta["complete"]
