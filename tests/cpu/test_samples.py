"""Whose CPU time it is: by function, by line, by thread, by operator; and all of it."""

from __future__ import annotations

import argparse
import shutil
import subprocess

import pytest
from tests.cpu.conftest import within_chance

from leadline.cli.left_out import _WITH_VALUE, split
from leadline.cli.run import add_arguments


def test_functions_have_their_share_and_threads_all_of_their_time(sample) -> None:
    seen = sample(
        """
        said = {}
        def heavy():
            said["heavy"] = spin(0.6)
        def light():
            said["light"] = spin(0.2)
        def in_thread():
            said["in_thread"] = spin(0.4)
        worker = threading.Thread(target=in_thread)
        worker.start()
        heavy()
        light()
        worker.join()
        print(json.dumps(said))
        """
    )
    whole = sum(seen.said.values())
    for name, seconds in seen.said.items():
        assert within_chance(seen.below(name) / seen.total_ns, seconds / whole, seen.samples), (name, seen.below(name))
    assert abs(seen.total_ns - whole * 1e9) < 0.05 * whole * 1e9 + 20e6  # what runs around the three is little
    cost_ns = seen.profile.meta["cost"]["callbacks_ns"]  # no part of what the program ran
    for thread in seen.profile.threads:
        if thread.name.startswith("leadline-"):  # it takes no samples of itself
            continue
        own = int(seen.profile.tree.inclusive("cpu_sample").sum[thread.node.row])
        assert -5e6 < thread.cpu_ns - own < cost_ns + 0.005 * thread.cpu_ns + 5e6, thread
    assert seen.losses() == {}


@pytest.mark.parametrize(("threads", "hz"), [(1, 99), (1, 999), (8, 99), (8, 999)])
def test_samples_of_a_thread_add_up_to_what_it_ran(sample, threads: int, hz: int) -> None:
    """On fewer cores than threads, at the usual rate and at ten times of it."""
    seen = sample(
        f"""
        workers = [threading.Thread(target=spin, args=({1.2 / threads},)) for _ in range({threads})]
        for one in workers:
            one.start()
        for one in workers:
            one.join()
        """,
        hz=hz,
    )
    whole = seen.profile.tree.inclusive("cpu_sample").sum
    known = [one for one in seen.profile.threads if not one.name.startswith("leadline-") and one.cpu_ns > 50_000_000]
    assert len(known) >= threads
    # What is missing is what taking samples took, which is more on a busy machine, and which the file tells.
    missing = {one.name + str(one.tid): one.cpu_ns - int(whole[one.node.row]) for one in known}
    assert min(missing.values()) >= -0.002 * min(one.cpu_ns for one in known), missing
    cost_ns = seen.profile.meta["cost"]["callbacks_ns"]
    assert sum(missing.values()) <= cost_ns + 0.005 * sum(one.cpu_ns for one in known), (missing, cost_ns)
    assert cost_ns < 0.1 * sum(one.cpu_ns for one in known)
    assert seen.losses() == {}


def test_lines_of_one_function_are_told_apart(sample) -> None:
    seen = sample(
        """
        def both():
            one = spin(0.45)
            other = spin(0.15)
            return [one, other]
        print(json.dumps(both()))
        """
    )
    tree = seen.profile.tree
    whole = tree.inclusive("cpu_sample").sum
    lines = sorted(int(whole[node.row]) for node in tree.walk() if node.name == "both")[-2:]
    share = seen.said[1] / sum(seen.said)
    assert within_chance(lines[0] / sum(lines), share, seen.samples)


def test_generators_recursion_callbacks_and_coroutines_have_their_callers(sample) -> None:
    seen = sample(
        """
        import asyncio
        def numbers():
            for _ in range(3):
                yield spin(0.05)
        def recursive(depth):
            return spin(0.15) if depth == 0 else recursive(depth - 1)
        def key(_):
            return spin(0.05)
        async def inner():
            return spin(0.15)
        async def outer():
            return await inner()
        sum(numbers())
        recursive(300)
        sorted([1, 2, 3], key=key)
        asyncio.run(outer())
        """
    )
    deepest = max(seen.profile.tree.walk(), key=lambda node: len(node.path()))
    assert [node.name for node in deepest.path()].count("recursive") == 301
    for caller, callee in (("<module>", "numbers"), ("numbers", "spin"), ("key", "spin"), ("outer", "inner")):
        assert any(
            node.name == callee and node.parent is not None and node.parent.name == caller
            for node in seen.profile.tree.walk()
        ), (caller, callee)
    assert seen.losses() == {}


def test_code_that_is_made_and_thrown_away_keeps_its_name(sample) -> None:
    seen = sample(
        """
        def make(number):
            scope = {"spin": spin}
            exec(compile(f"def made_{number % 7}():\\n    return spin(0.01)", "<made>", "exec"), scope)
            return scope[f"made_{number % 7}"]
        for number in range(70):
            make(number)()
        """,
        hz=250,
    )
    made = {name: seen.below(name) for name in (f"made_{number}" for number in range(7))}
    assert all(made.values()), made
    assert sum(made.values()) > 0.9 * seen.total_ns
    assert seen.losses() == {}


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")
def test_threads_without_python_are_sampled_too(sample, place) -> None:
    (place.folder / "spin.c").write_text(
        """
        #include <pthread.h>
        #include <signal.h>
        #include <time.h>
        #include <unistd.h>
        static double cpu(void) {
          struct timespec t;
          clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
          return t.tv_sec + t.tv_nsec / 1e9;
        }
        static void* spin(void* deaf) {
          pthread_setname_np(pthread_self(), deaf ? "deaf" : "plain");
          sigset_t all;
          sigfillset(&all);
          if (deaf) pthread_sigmask(SIG_SETMASK, &all, 0);
          while (cpu() < 0.4) {}
          if (deaf) sleep(1);  /* what it ran is looked at twenty times a second, and not when it ends */
          return 0;
        }
        void both(void) {
          pthread_t one, other;
          pthread_create(&one, 0, spin, 0);
          pthread_create(&other, 0, spin, (void*)1);
          pthread_join(one, 0);
          pthread_join(other, 0);
        }
        """
    )
    subprocess.run(
        ["cc", "-O1", "-D_GNU_SOURCE", "-shared", "-fPIC", "-pthread", "spin.c", "-o", "spin.so"],
        cwd=place.folder,
        check=True,
    )
    seen = sample(
        """
        import ctypes
        ctypes.CDLL("./spin.so").both()
        """
    )
    by_thread = {
        thread.name: int(seen.profile.tree.inclusive("cpu_sample").sum[thread.node.row])
        for thread in seen.profile.threads
    }
    assert by_thread["plain"] == pytest.approx(0.4e9, rel=0.05)
    assert by_thread["deaf"] == pytest.approx(0.4e9, rel=0.05)
    assert seen.losses() == {"samples_missing": 1}
    assert [loss.detail for loss in seen.profile.losses] == [
        "The thread deaf blocks all signals, so what it ran is booked at the thread itself."
    ]


def test_nothing_waits_shorter_because_of_samples(sample) -> None:
    """No call is interrupted: the clock of a thread stands still while it waits."""
    seen = sample(
        """
        import ctypes, select
        libc = ctypes.CDLL(None, use_errno=True)
        interrupted = 0
        for _ in range(300):
            spin(0.001)
            ctypes.set_errno(0)
            libc.usleep(300)
            interrupted += ctypes.get_errno() == 4
        print(json.dumps(interrupted))
        """
    )
    assert seen.said == 0
    assert seen.samples > 5


def test_a_program_may_use_real_time_signals_itself(sample) -> None:
    """Taken before measuring began they are left alone; taken later, ours gives way."""
    seen = sample(
        """
        import os, signal
        got = []
        for number in range(signal.SIGRTMIN, signal.SIGRTMAX + 1):
            signal.signal(number, lambda number, frame: got.append(number))
        spin(0.2)
        del got[:]
        for number in range(signal.SIGRTMIN, signal.SIGRTMAX + 1):
            os.kill(os.getpid(), number)
        spin(0.2)
        print(json.dumps(sorted(set(got)) == list(range(signal.SIGRTMIN, signal.SIGRTMAX + 1))))
        """
    )
    assert seen.said is True
    assert seen.total_ns > 0.35e9


def test_forked_children_and_programs_after_exec_are_sampled(sample, place) -> None:
    place.write("after.py", "import time\nbegin = time.thread_time()\nwhile time.thread_time() - begin < 0.3: pass\n")
    seen = sample(
        """
        import os, sys
        def in_child():
            spin(0.3)
        child = os.fork()
        if child == 0:
            in_child()
            os.execv(sys.executable, [sys.executable, "after.py"])
        def in_parent():
            spin(0.3)
        in_parent()
        assert os.waitpid(child, 0)[1] == 0
        """
    )
    assert seen.below("in_child") > 0.2e9
    assert seen.below("in_parent") > 0.2e9
    files = {node.file.rsplit("/", 1)[-1] for node in seen.profile.tree.walk() if node.kind == "python"}
    assert "after.py" in files
    assert len(seen.profile.processes) == 3 or len(seen.profile.processes) == 2


def test_pauses_are_not_sampled(sample) -> None:
    seen = sample(
        """
        import leadline
        def paused():
            spin(1.0)
        def measured():
            spin(1.0)
        leadline.pause()
        paused()
        leadline.resume()
        measured()
        """
    )
    assert seen.below("paused") == 0
    assert seen.below("measured") == pytest.approx(1.0e9, rel=0.1)


def test_samples_stand_below_regions_and_beside_them(sample) -> None:
    seen = sample(
        """
        import leadline
        def inside():
            spin(0.8)
        def outside():
            spin(0.8)
        with leadline.region("loading"):
            inside()
        outside()
        """
    )
    assert seen.below("loading") == pytest.approx(0.8e9, rel=0.1)
    names = [[above.name for above in node.path()] for node in seen.profile.tree.walk() if node.name == "inside"]
    assert names and all("loading" in path for path in names)
    outside = [[above.name for above in node.path()] for node in seen.profile.tree.walk() if node.name == "outside"]
    assert outside and not any("loading" in path for path in outside)


def test_torch_operators_and_the_python_between_them(sample) -> None:
    pytest.importorskip("torch", reason="needs torch")
    seen = sample(
        """
        import torch
        torch.set_num_threads(1)
        class Block(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(256, 256)
            def forward(self, x):
                spin(0.01)
                return self.linear(x)
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.block = Block()
            def forward(self, x):
                return self.block(x)
        model = Net()
        x = torch.ones(64, 256)
        def product():
            begin = time.thread_time()
            a = torch.ones(400, 400)
            while time.thread_time() - begin < 0.3:
                a @ a
        for _ in range(30):
            model(x).sum().backward()
        product()
        """
    )
    tree = seen.profile.tree
    whole = tree.inclusive("cpu_sample").sum
    paths = [
        ([(n.kind, n.name) for n in node.path()], int(whole[node.row])) for node in tree.walk() if node.name == "spin"
    ]
    in_model = [ns for path, ns in paths if ("module", "model.block") in path]
    assert within_chance(sum(in_model) / seen.total_ns, 0.3e9 / seen.total_ns, seen.samples)
    for path, _ in paths:  # the same path that operators of the module have
        if ("module", "model.block") in path:
            kinds = [kind for kind, _ in path]
            assert path[kinds.index("phase")] == ("phase", "forward")
            assert path.index(("module", "model")) + 2 == path.index(("module", "model.block"))
            assert ("python", "Module._call_impl") not in path
    operators = sum(
        int(whole[node.row])
        for node in tree.walk()
        if node.name == "aten::mm" and "product" in [n.name for n in node.path()]
    )
    assert operators > 0.2e9


def test_modules_that_have_died_before_their_samples_are_booked_are_called_by_nobody_elses_memory(sample) -> None:
    pytest.importorskip("torch", reason="needs torch")
    seen = sample(
        """
        import torch
        class Short(torch.nn.Module):
            def forward(self, x):
                spin(0.004)
                return x
        for number in range(200):
            kind = type(f"Kind{number}", (Short,), {})
            kind()(1)
            del kind
            taken = [bytes([0xB0]) * 40 for _ in range(300)], [bytearray(b"\\xb0" * n) for n in range(16, 1500, 8)]
        """
    )
    named = {(node.name, node.module) for node in seen.profile.tree.walk() if node.kind == "module"}
    assert named
    assert all(name == kind and name.startswith("Kind") for name, kind in named), named


def test_signals_that_come_too_fast_or_never(place) -> None:
    place.write("script.py", "pass")
    for hz, sentence in ((0, None), (1e9, "The CPU sampling rate cannot be 1e+09 a second; choose 0.1 to 10000.")):
        result = place.leadline("run", "-q", "--cpu-sample", str(hz), "script.py")
        said = result.stderr.decode()
        assert (sentence or "") in said and "Traceback" not in said
        assert result.returncode == (2 if sentence else 0)


def test_the_rate_may_be_left_out(place) -> None:
    place.write("script.py", "import sys\nprint(sys.argv[1:])")
    result = place.leadline("run", "--cpu-sample", "-o", "out.leadline", "script.py", "--cpu-sample", "x")
    assert result.stdout.decode() == "['--cpu-sample', 'x']\n"
    assert "CPU samples at 99 Hz" in result.stderr.decode()


def test_no_value_of_an_option_is_taken_for_the_program() -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    for action in parser._actions:
        for name in action.option_strings:
            takes_value = action.nargs is None and name != "-m"
            assert (name in (*_WITH_VALUE, "--cpu-sample", "--wait", "--native", "--instructions")) == takes_value, name
    assert split(["-o", "x", "--cpu-sample", "a.py", "--cpu-sample"]) == [
        "-o",
        "x",
        "--cpu-sample=99",
        "a.py",
        "--cpu-sample",
    ]
    assert split(["--cpu-sample", "200", "-m", "x"]) == ["--cpu-sample", "200", "-m", "x"]
    assert split(["--instructions", "a.py"]) == ["--instructions=continuous", "a.py"]
    assert split(["--instructions=serialised", "a.py"]) == ["--instructions=serialised", "a.py"]
    assert split(["--cpu-sample", "--", "ls"]) == ["--cpu-sample=99", "--", "ls"]
