"""Programs that measure themselves: start and stop, their errors, and an outer session that goes on."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import leadline
from leadline.capture.current import CURRENT


def region_names(path: Path) -> list[str]:
    return sorted(node.name for node in leadline.open(str(path)).tree.walk() if node.kind == "region")


def work(name: str) -> None:
    with leadline.region(name):
        pass


def test_the_block_and_nothing_else(tmp_path: Path) -> None:
    output = tmp_path / "a.leadline"
    work("before")
    with leadline.profile(output):
        work("inside")
    work("after")
    assert region_names(output) == ["inside"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.leadline"]


def test_a_decorated_function_is_measured_at_each_call(tmp_path: Path) -> None:
    output = tmp_path / "a.leadline"

    @leadline.profile(output)
    def run(name: str) -> str:
        work(name)
        return name

    assert run("one") == "one"
    assert region_names(output) == ["one"]
    assert run("two") == "two"
    assert region_names(output) == ["two"]


def test_options_are_one_object_or_single_fields_or_both(tmp_path: Path) -> None:
    options = leadline.Options(memory=False, trace=leadline.TraceWindow.parse("steps=3"), quiet=True)
    for changes in ({}, {"shapes": True}):
        with leadline.profile(tmp_path / "a.leadline", options, **changes):
            work("inside")
        asked = leadline.open(str(tmp_path / "a.leadline")).meta["asked"]
        assert leadline.Options.of(asked) == leadline.Options.of(options.asked() | changes)
        assert (asked["memory"], asked["shapes"]) == (False, bool(changes))
    with pytest.raises(leadline.ProfileError, match=r"must be a leadline\.Options, not dict"):
        leadline.start(tmp_path / "a.leadline", {"shapes": True})  # type: ignore[arg-type]
    assert CURRENT.session is None


def test_the_block_that_raises_leaves_its_profile(tmp_path: Path) -> None:
    output = tmp_path / "a.leadline"
    with pytest.raises(KeyError), leadline.profile(output):
        work("inside")
        raise KeyError
    assert region_names(output) == ["inside"]
    assert CURRENT.session is None


def test_start_and_stop_again_and_again(tmp_path: Path) -> None:
    for number in range(4):
        output = tmp_path / f"{number}.leadline"
        leadline.start(output)
        work(f"round {number}")
        assert leadline.stop() == output
        assert region_names(output) == [f"round {number}"]


def test_pause_and_resume(tmp_path: Path) -> None:
    output = tmp_path / "a.leadline"
    with leadline.profile(output):
        work("one")
        leadline.pause()
        work("paused")
        leadline.resume()
        work("two")
    assert region_names(output) == ["one", "two"]


def test_a_region_around_start_and_stop(tmp_path: Path) -> None:
    output = tmp_path / "a.leadline"
    with leadline.region("outside"):
        leadline.start(output)
        work("inside")
        inner = leadline.region("never ended inside")
        inner.__enter__()
        leadline.stop()
        inner.__exit__(None, None, None)
    assert region_names(output) == ["inside", "never ended inside"]


def test_regions_of_other_threads(tmp_path: Path) -> None:
    output = tmp_path / "a.leadline"
    with leadline.profile(output):
        threads = [threading.Thread(target=work, args=(f"thread {n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert region_names(output) == [f"thread {n}" for n in range(4)]


def test_regions_show_the_users_lines_and_not_ours(tmp_path: Path) -> None:
    output = tmp_path / "a.leadline"

    @leadline.region("decorated")
    def decorated() -> None:
        work("nested")

    with leadline.profile(output):
        decorated()
    profile = leadline.open(str(output))
    nested = profile.tree.find(kind="region", name="nested")[0]
    files = {frame.file for frame in nested.path() if frame.kind == "python"}
    assert str(Path(__file__)) in files
    assert not [name for name in files if "leadline/capture" in name]


def test_details_of_regions_are_kept_apart(tmp_path: Path) -> None:
    output = tmp_path / "a.leadline"
    with leadline.profile(output):
        for split in ("train", "test", "train"):
            with leadline.region("load", {"split": split}):
                pass
    nodes = leadline.open(str(output)).tree.find(kind="region", name="load")
    assert sorted(node.exclusive("call_time").count for node in nodes) == [1, 2]


def test_steps_open_and_close_the_trace_window(tmp_path: Path) -> None:
    output = tmp_path / "a.leadline"
    with leadline.profile(output, trace="steps=2,wait=1"):
        for number in range(5):
            work(f"step {number}")
            leadline.step()
    profile = leadline.open(str(output))
    events = profile.table("events")
    names = {profile.tree.node(int(node)).name for node in events["node"]}
    assert {"step 1", "step 2"} <= names
    assert not {"step 0", "step 3", "step 4"} & names


def test_a_trace_window_by_seconds(tmp_path: Path) -> None:
    output = tmp_path / "a.leadline"
    with leadline.profile(output, trace="seconds=100,wait=0"):
        work("traced")
    profile = leadline.open(str(output))
    assert {profile.tree.node(int(node)).name for node in profile.table("events")["node"]} == {"traced"}


def test_starting_inside_a_measurement_and_stopping_that_leaves_it_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leadline.start(tmp_path / "a.leadline")
    try:
        leadline.start(tmp_path / "b.leadline")
        leadline.start(tmp_path / "c.leadline", quiet=True)
        assert leadline.stop() is None
        assert leadline.stop() is None
        assert CURRENT.session is not None
        assert capsys.readouterr().err.count("leadline.start() inside it does nothing") == 2
        ran = False
        with leadline.profile(tmp_path / "b.leadline"):
            ran = True
        assert ran
        assert capsys.readouterr().err.count("leadline.profile() inside it does nothing") == 1
    finally:
        assert leadline.stop() == tmp_path / "a.leadline"
    assert not (tmp_path / "b.leadline.part").exists()


@pytest.mark.parametrize("function", ["stop", "pause", "resume"])
def test_a_program_that_is_not_measured_runs_as_one_that_is(function: str) -> None:
    assert getattr(leadline, function)() is None


def test_a_step_outside_is_nothing() -> None:
    leadline.step()
    leadline.step(7)


@pytest.mark.parametrize(
    ("output", "options"),
    [("missing/a.leadline", {}), (".", {}), ("a.leadline", {"shape": True}), ("a.leadline", {"trace": "steps=x"})],
)
def test_errors_at_the_start_leave_nothing(tmp_path: Path, output: str, options: dict[str, object]) -> None:
    with pytest.raises(leadline.ProfileError):
        leadline.start(tmp_path / output, **options)
    assert CURRENT.session is None
    assert list(tmp_path.iterdir()) == []


def test_a_profile_that_cannot_be_written_costs_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import zipfile

    def full(*arguments: object, **named: object) -> None:
        raise OSError(28, "No space left on device")

    leadline.start(tmp_path / "a.leadline")
    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    assert leadline.stop() is None
    monkeypatch.undo()
    error = capfd.readouterr().err
    assert error.count("\n") == 1
    assert "No space left on device" in error
    assert f"leadline recover {tmp_path / 'a.leadline.part'}" in error
    from leadline.cli.main import main

    assert main(["recover", str(tmp_path / "a.leadline.part")]) == 0
    assert leadline.open(str(tmp_path / "a.leadline")).meta["complete"]


def test_stop_is_quick_and_leaves_no_thread(tmp_path: Path) -> None:
    threads = set(Path("/proc/self/task").iterdir())
    leadline.start(tmp_path / "a.leadline")
    for number in range(1000):
        work(f"region {number}")
    before = time.monotonic()
    leadline.stop()
    assert time.monotonic() - before < 1
    while set(Path("/proc/self/task").iterdir()) - threads:  # one that was joined is listed for a moment longer
        assert time.monotonic() - before < 30


def test_children_of_a_program_that_measures_itself(place) -> None:
    place.write("child.py", "import leadline\nwith leadline.region('child'): pass")
    place.write(
        "script.py",
        """
        import leadline, os, subprocess, sys
        before = dict(os.environ), os._exit, os.execv
        with leadline.profile("out.leadline"):
            subprocess.run([sys.executable, "child.py"], check=True)
            if os.fork() == 0:
                with leadline.region("fork"):
                    pass
                os._exit(0)
            os.wait()
        assert before == (dict(os.environ), os._exit, os.execv)
        subprocess.run([sys.executable, "child.py"], check=True)
        """,
    )
    result = place.python("script.py")
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")
    assert region_names(place.folder / "out.leadline") == ["child", "fork"]


def test_a_forked_child_that_leaves_the_block(place) -> None:
    """Both processes run the end of the `with` block; only the one that opened it makes the file."""
    place.write(
        "script.py",
        """
        import leadline, os
        with leadline.profile("out.leadline"):
            child = os.fork() == 0
            with leadline.region("child" if child else "parent"):
                pass
            if not child:
                os.wait()
        """,
    )
    result = place.python("script.py")
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")
    assert region_names(place.folder / "out.leadline") == ["child", "parent"]


def test_a_session_without_stop_ends_with_the_program(place) -> None:
    place.write("script.py", "import leadline\nleadline.start()\nwith leadline.region('a'): pass")
    result = place.python("script.py")
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")
    assert region_names(place.folder / "script.leadline") == ["a"]


INSIDE = """
    import leadline, os
    with leadline.profile("inner.leadline"):
        with leadline.region("inside"):
            pass
    leadline.start("inner.leadline")
    assert leadline.stop() is None
    with leadline.region("after"):
        pass
    assert not os.path.exists("inner.leadline")
"""


def test_the_outer_session_goes_on(place) -> None:
    place.write("script.py", INSIDE)
    result = place.leadline("run", "script.py")
    assert result.returncode == 0
    assert result.stderr.decode().count("leadline.start() inside it does nothing") == 2
    assert region_names(place.folder / "script.leadline") == ["after", "inside"]


def test_the_outer_session_from_the_environment_goes_on(place) -> None:
    place.write("script.py", INSIDE)
    assert place.python("script.py", env={"LEADLINE": "outer.leadline"}).returncode == 0
    assert region_names(place.folder / "outer.leadline") == ["after", "inside"]


def test_importing_is_cheap_and_loads_nothing() -> None:
    """2 ms on an idle machine; the promise to users, which a busy one keeps too, is 100 ms."""
    program = (
        "import sys, time; before = set(sys.modules); start = time.perf_counter(); import leadline; "
        "print(time.perf_counter() - start, *sorted(set(sys.modules) - before))"
    )
    outputs = [subprocess.check_output([sys.executable, "-c", program], text=True).split() for _ in range(3)]
    assert min(float(words[0]) for words in outputs) < 0.1
    assert not {"numpy", "torch", "typing", "dataclasses", "json", "pathlib", "leadline.capture"} & set(outputs[0][1:])


def test_the_function_keeps_its_name_beside_the_package_that_reads_files() -> None:
    program = """
import leadline
import leadline.profiles.errors
assert leadline.profiles.errors.ProfileFileError
with leadline.profile("a.leadline"):
    pass
assert leadline.open("a.leadline").meta["complete"]
"""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", program], cwd=folder, check=True)


def test_every_public_name_is_there() -> None:
    for name in leadline.__all__:
        assert getattr(leadline, name).__doc__ or name == "__version__", name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        leadline.nothing
