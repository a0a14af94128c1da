"""Children: however they are made and however they end, they are in the one file, or the file says that they are not whole."""

import json
import os
import signal
import subprocess
import sys

import pytest

import leadline
from leadline.capture.config import VARIABLES

WORK = """
    import leadline, os, sys
    def work(name):
        with leadline.region(name):
            pass
"""


def regions(profile) -> dict[str, list[str]]:
    """Region names by the command line of their process, sorted."""
    found: dict[str, list[str]] = {}
    for node in profile.tree.walk():
        if node.kind == "region":
            found.setdefault(process_of(node), []).append(node.name)
    return {process: sorted(names) for process, names in sorted(found.items())}


def region_names(profile) -> list[str]:
    return sorted(node.name for node in profile.tree.walk() if node.kind == "region")


def process_of(node) -> str:
    while node.kind != "process":
        node = node.parent
    return node.name


def measured(place, program: str, *options: str, returncode: int = 0):
    """Run a program that begins with WORK under Leadline; its profile."""
    place.write("script.py", WORK)
    with (place.folder / "script.py").open("a") as stream:
        import textwrap

        stream.write(textwrap.dedent(program))
    result = place.leadline("run", "-q", *options, "script.py")
    assert result.returncode == returncode, result.stderr.decode()
    assert result.stderr == b""
    return leadline.open(str(place.folder / "script.leadline"))


def test_one_process(place) -> None:
    profile = measured(place, "work('a')")
    assert region_names(profile) == ["a"]
    assert profile.meta["complete"]
    assert len(profile.table("processes")["pid"]) == 1
    assert not (place.folder / "script.leadline.part").exists()


def test_fork(place) -> None:
    profile = measured(
        place,
        """
        work("before")
        pid = os.fork()
        if pid == 0:
            work("child")
            sys.exit(0)
        os.waitpid(pid, 0)
        work("parent")
        """,
    )
    assert region_names(profile) == ["before", "child", "parent"]
    assert len(profile.table("processes")["pid"]) == 2
    assert profile.meta["complete"]


def test_a_forked_child_that_leaves_by_os_exit(place) -> None:
    profile = measured(
        place,
        """
        pid = os.fork()
        if pid == 0:
            work("child")
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        """,
    )
    assert region_names(profile) == ["child"]
    assert profile.meta["complete"]


def test_forks_of_forks(place) -> None:
    profile = measured(
        place,
        """
        for depth in range(4):
            pid = os.fork()
            if pid:
                os.waitpid(pid, 0)
                break
            work(f"depth {depth}")
        """,
    )
    assert region_names(profile) == [f"depth {depth}" for depth in range(4)]
    assert len(profile.table("processes")["pid"]) == 5


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(place, method: str) -> None:
    profile = measured(
        place,
        f"""
        import multiprocessing
        if __name__ == "__main__":
            context = multiprocessing.get_context("{method}")
            children = [context.Process(target=work, args=(f"child {{i}}",)) for i in range(3)]
            for child in children:
                child.start()
            for child in children:
                child.join()
            assert [child.exitcode for child in children] == [0, 0, 0]
            work("parent")
        """,
    )
    assert region_names(profile) == ["child 0", "child 1", "child 2", "parent"]
    assert profile.meta["complete"]


def test_spawn_finds_the_functions_of_main(place) -> None:
    """The child imports the script as __mp_main__ to unpickle them, as it does without Leadline."""
    profile = measured(
        place,
        """
        import multiprocessing, pickle
        class Thing:
            def __init__(self): self.value = 3
        def double(thing):
            work("double")
            return thing.value * 2
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                assert pool.map(double, [Thing()]) == [6]
                pool.close()
                pool.join()
        """,
    )
    assert region_names(profile) == ["double"]


def test_a_pool_that_is_terminated(place) -> None:
    """`with Pool()` ends its workers by SIGTERM. What they measured is kept all the same."""
    profile = measured(
        place,
        """
        import multiprocessing
        def double(x):
            work("double")
            return 2 * x
        if __name__ == "__main__":
            with multiprocessing.get_context("fork").Pool(2) as pool:
                assert pool.map(double, range(8)) == [2 * x for x in range(8)]
        """,
    )
    assert set(region_names(profile)) == {"double"}
    doubles = [node for node in profile.tree.walk() if node.name == "double"]
    assert sum(node.exclusive("call_time").count for node in doubles) == 8


def test_subprocesses(place) -> None:
    place.write("child.py", WORK + "    work(sys.argv[1])\n")
    profile = measured(
        place,
        """
        import subprocess
        subprocess.run([sys.executable, "child.py", "direct"], check=True)
        subprocess.run(f"{sys.executable} child.py shell; true", shell=True, check=True)
        os.system(f"{sys.executable} child.py system")
        """,
    )
    assert region_names(profile) == ["direct", "shell", "system"]
    assert len(profile.table("processes")["pid"]) == 4


def test_exec_keeps_what_was_measured_before(place) -> None:
    place.write("child.py", WORK + "    work('after')\n")
    profile = measured(
        place,
        """
        work("before")
        try:
            os.execv("/no/such/program", ["x"])
        except OSError:
            work("failed exec")
        os.execlp(sys.executable, sys.executable, "child.py")
        """,
    )
    assert region_names(profile) == ["after", "before", "failed exec"]


def test_no_follow_keeps_to_the_first_process(place) -> None:
    place.write(
        "child.py", WORK + "    work('child')\n    print([n for n in os.environ if n.startswith('LEADLINE')])\n"
    )
    profile = measured(
        place,
        """
        import subprocess
        work("first")
        assert subprocess.check_output([sys.executable, "child.py"]) == b"[]\\n"
        pid = os.fork()
        if pid == 0:
            work("fork")
            sys.exit(0)
        os.waitpid(pid, 0)
        work("last")
        """,
        "--no-follow",
    )
    assert region_names(profile) == ["first", "last"]
    assert len(profile.table("processes")["pid"]) == 1


def test_no_follow_of_a_shell_measures_the_first_python_only(place) -> None:
    place.write("child.py", WORK + "    work(sys.argv[1])\n")
    command = f"{sys.executable} child.py one; {sys.executable} child.py two"
    result = place.leadline("run", "-q", "--no-follow", "-o", "x.leadline", "--", "sh", "-c", command)
    assert (result.returncode, result.stderr) == (0, b"")
    assert region_names(leadline.open(str(place.folder / "x.leadline"))) == ["one"]


def test_ranks_of_torchrun_children(place) -> None:
    place.write("child.py", WORK + "    work('rank ' + os.environ['RANK'])\n")
    profile = measured(
        place,
        """
        import subprocess
        for rank in range(2):
            environment = {**os.environ, "RANK": str(rank + 4), "LOCAL_RANK": str(rank)}
            subprocess.run([sys.executable, "child.py"], env=environment, check=True)
        """,
    )
    processes = profile.table("processes")
    assert sorted(zip(processes["rank"].tolist(), processes["local_rank"].tolist(), strict=True)) == [
        (-1, -1),
        (4, 0),
        (5, 1),
    ]


def test_a_child_that_is_killed_is_said_to_be_incomplete(place) -> None:
    profile = measured(
        place,
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
    assert "parent" in region_names(profile)
    assert not profile.meta["complete"]
    assert [loss.kind.name for loss in profile.losses] == ["PROCESS_INCOMPLETE"]


def test_a_child_that_outlives_its_parent(place) -> None:
    """The file does not wait for it and says that it had not ended; the child notices nothing."""
    profile = measured(
        place,
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
    assert region_names(profile) == ["parent"]
    assert [loss.kind.name for loss in profile.losses] == ["PROCESS_INCOMPLETE"]
    wait_for_file(place.folder / "child.done")
    wait_until_gone(place.folder / "script.leadline.part")


def test_a_killed_program_leaves_a_profile(place) -> None:
    profile = measured(
        place,
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
    assert region_names(profile) == ["early"]
    assert not profile.meta["complete"]


def test_a_killed_supervisor_leaves_what_recover_needs(place) -> None:
    place.write("script.py", WORK + "    work('a')\n    os.kill(os.getppid(), 9)\n    input()\n")
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
    assert region_names(leadline.open(str(place.folder / "script.leadline"))) == ["a"]


def test_out_of_memory(place) -> None:
    """An address space that fills up: the program's MemoryError is the program's end, and the profile is there."""
    profile = measured(
        place,
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
    assert region_names(profile) == ["after", "before"]


def test_threads_that_outlive_main(place) -> None:
    profile = measured(
        place,
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
    assert region_names(profile) == ["late", "main"]


def test_exit_handlers_of_the_program_are_measured(place) -> None:
    profile = measured(place, "import atexit\natexit.register(work, 'at exit')")
    assert region_names(profile) == ["at exit"]


def test_an_exception_is_noted(place) -> None:
    place.write("script.py", WORK + "    work('a')\n    raise LookupError('x')\n")
    assert place.leadline("run", "-q", "script.py").returncode == 1
    profile = leadline.open(str(place.folder / "script.leadline"))
    assert profile.meta["complete"]
    assert profile_meta(place)["exit"] == {"code": 1}
    assert profile_meta(place)["processes"][0]["exit"] == {"exception": "LookupError"}


def test_bookkeeping_processes_of_python_are_left_out(place) -> None:
    profile = measured(
        place,
        """
        import multiprocessing
        from multiprocessing import shared_memory
        if __name__ == "__main__":
            memory = shared_memory.SharedMemory(create=True, size=100)  # starts the resource tracker
            memory.close()
            memory.unlink()
            work("main")
        """,
    )
    assert len(profile.table("processes")["pid"]) == 1


def profile_meta(place) -> dict[str, object]:
    import zipfile

    with zipfile.ZipFile(place.folder / "script.leadline") as package:
        return json.loads(package.read("meta.json"))


def wait_for_file(path) -> None:
    import time

    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} did not appear"
        time.sleep(0.01)


def wait_until_gone(path) -> None:
    import time

    deadline = time.monotonic() + 60
    while path.exists():
        assert time.monotonic() < deadline, f"{path.name} stayed"
        time.sleep(0.01)


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
    profile = measured(
        place,
        TERMINATED.format(f"os.kill(os.getpid(), {int(number)})"),
        "--flush-interval",
        "1000",
        returncode=-number,
    )
    assert region_names(profile) == ["main", "thread"]
    assert profile.meta["complete"]
    assert list(profile.losses) == []


def test_a_handler_of_the_program_replaces_ours(place) -> None:
    profile = measured(
        place,
        """
        import signal
        assert signal.signal(signal.SIGTERM, lambda number, frame: work("handler")) == signal.SIG_DFL
        os.kill(os.getpid(), signal.SIGTERM)
        sys.exit(4)
        """,
        returncode=4,
    )
    assert region_names(profile) == ["handler"]


def test_an_ignored_signal_stays_ignored(place) -> None:
    program = "import os, signal; os.kill(os.getpid(), signal.SIGHUP); print('alive')"
    place.write("script.py", program)
    result = place.run("sh", "-c", f"trap '' HUP; {sys.executable} -m leadline.cli.main run -q script.py")
    assert (result.returncode, result.stdout, result.stderr) == (0, b"alive\n", b"")


def test_a_child_that_nobody_follows_dies_of_the_signal_at_once(place) -> None:
    """A fork behind Python's back has no flush thread: the handler that it inherits must not swallow the signal."""
    profile = measured(
        place,
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
    assert region_names(profile) == ["parent"]
