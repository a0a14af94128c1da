"""Children: however they are made, they are in the one file."""

import sys

import pytest


def test_one_process(place) -> None:
    profile = place.measure("work('a')")
    assert place.regions(profile) == ["a"]
    assert profile.meta["complete"]
    assert len(profile.table("processes")["pid"]) == 1
    assert not (place.folder / "script.leadline.part").exists()


def test_fork(place) -> None:
    profile = place.measure(
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
    assert place.regions(profile) == ["before", "child", "parent"]
    assert len(profile.table("processes")["pid"]) == 2
    assert profile.meta["complete"]


def test_a_fork_warns_of_no_thread_of_ours(place) -> None:
    """CPython 3.12 warns of threads. 3.13 counts them after the hooks, here one that is written in Python."""
    profile = place.measure(
        """
        import warnings
        os.register_at_fork(after_in_parent=lambda: sum(range(10)))
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for _ in range(3):
                if (pid := os.fork()) == 0:
                    os._exit(0)
                os.waitpid(pid, 0)
        assert not seen, [str(one.message) for one in seen]
        work("parent")
        """,
    )
    assert place.regions(profile) == ["parent"]


def test_a_forked_child_that_leaves_by_os_exit(place) -> None:
    profile = place.measure(
        """
        pid = os.fork()
        if pid == 0:
            work("child")
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        """,
    )
    assert place.regions(profile) == ["child"]
    assert profile.meta["complete"]


def test_forks_of_forks(place) -> None:
    profile = place.measure(
        """
        for depth in range(4):
            pid = os.fork()
            if pid:
                os.waitpid(pid, 0)
                break
            work(f"depth {depth}")
        """,
    )
    assert place.regions(profile) == [f"depth {depth}" for depth in range(4)]
    assert len(profile.table("processes")["pid"]) == 5


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(place, method: str) -> None:
    profile = place.measure(
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
    assert place.regions(profile) == ["child 0", "child 1", "child 2", "parent"]
    assert profile.meta["complete"]


def test_spawn_finds_the_functions_of_main(place) -> None:
    """The child imports the script as __mp_main__ to unpickle them, as it does without Leadline."""
    profile = place.measure(
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
    assert place.regions(profile) == ["double"]


def test_a_pool_that_is_terminated(place) -> None:
    """`with Pool()` ends its workers by SIGTERM. What they measured is kept all the same."""
    profile = place.measure(
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
    assert set(place.regions(profile)) == {"double"}
    doubles = [node for node in profile.tree.walk() if node.name == "double"]
    assert sum(node.exclusive("call_time").count for node in doubles) == 8


def test_subprocesses(place) -> None:
    place.write_work("child.py", "work(sys.argv[1])\n")
    profile = place.measure(
        """
        import subprocess
        subprocess.run([sys.executable, "child.py", "direct"], check=True)
        subprocess.run(f"{sys.executable} child.py shell; true", shell=True, check=True)
        os.system(f"{sys.executable} child.py system")
        """,
    )
    assert place.regions(profile) == ["direct", "shell", "system"]
    assert len(profile.table("processes")["pid"]) == 4


def test_exec_keeps_what_was_measured_before(place) -> None:
    place.write_work("child.py", "work('after')\n")
    profile = place.measure(
        """
        work("before")
        try:
            os.execv("/no/such/program", ["x"])
        except OSError:
            work("failed exec")
        os.execlp(sys.executable, sys.executable, "child.py")
        """,
    )
    assert place.regions(profile) == ["after", "before", "failed exec"]


def test_no_follow_keeps_to_the_first_process(place) -> None:
    place.write_work("child.py", "work('child')\nprint([n for n in os.environ if n.startswith('LEADLINE')])")
    profile = place.measure(
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
    assert place.regions(profile) == ["first", "last"]
    assert len(profile.table("processes")["pid"]) == 1


def test_no_follow_of_a_shell_measures_the_first_python_only(place) -> None:
    place.write_work("child.py", "work(sys.argv[1])\n")
    command = f"{sys.executable} child.py one; {sys.executable} child.py two"
    result = place.leadline("run", "-q", "--no-follow", "-o", "x.leadline", "--", "sh", "-c", command)
    assert (result.returncode, result.stderr) == (0, b"")
    assert place.regions(place.open("x.leadline")) == ["one"]


def test_ranks_of_torchrun_children(place) -> None:
    place.write_work("child.py", "work('rank ' + os.environ['RANK'])\n")
    profile = place.measure(
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


def test_bookkeeping_processes_of_python_are_left_out(place) -> None:
    profile = place.measure(
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
