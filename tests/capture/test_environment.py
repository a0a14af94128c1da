"""LEADLINE=out.leadline python train.py: no supervisor, no change to the program."""

from pathlib import Path

import pytest

import leadline

PROGRAM = """
    import leadline, sys
    with leadline.region("work"):
        print("out", sys.argv, __name__, __file__)
"""


def region_names(path: Path) -> list[str]:
    return sorted(node.name for node in leadline.open(str(path)).tree.walk() if node.kind == "region")


def test_the_file_and_one_line(place) -> None:
    place.write("script.py", PROGRAM)
    plain = place.python("script.py", "-x")
    result = place.python("script.py", "-x", env={"LEADLINE": "out.leadline"})
    assert (result.returncode, result.stdout) == (0, plain.stdout)
    path = place.folder / "out.leadline"
    assert result.stderr.decode() == f"leadline: wrote {path}; read it with `leadline report {path}`.\n"
    assert region_names(path) == ["work"]
    assert sorted(item.name for item in place.folder.iterdir()) == ["out.leadline", "script.py"]


@pytest.mark.parametrize("end", ["sys.exit(3)", "import os; os._exit(4)", "raise ValueError('x')", "1 / 0"])
def test_every_end_in_order_leaves_the_file(place, end: str) -> None:
    place.write("script.py", PROGRAM + f"    {end}\n")
    plain = place.python("script.py")
    result = place.python("script.py", env={"LEADLINE": "out.leadline", "LEADLINE_OPTIONS": '{"quiet": true}'})
    assert (result.returncode, result.stdout, result.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert region_names(place.folder / "out.leadline") == ["work"]


def test_children_end_in_the_same_file(place) -> None:
    place.write("child.py", "import leadline\nwith leadline.region('child'): pass")
    place.write(
        "script.py", PROGRAM + "    import subprocess\n    subprocess.run([sys.executable, 'child.py'], check=True)\n"
    )
    result = place.python("script.py", env={"LEADLINE": "out.leadline"})
    assert result.stderr.count(b"\n") == 1
    assert region_names(place.folder / "out.leadline") == ["child", "work"]
    assert len(leadline.open(str(place.folder / "out.leadline")).table("processes")["pid"]) == 2


def test_our_end_comes_after_the_programs_own(place) -> None:
    place.write("script.py", PROGRAM + "    import atexit\n    atexit.register(print, 'bye', file=sys.stderr)\n")
    result = place.python("script.py", env={"LEADLINE": "out.leadline"})
    assert result.stderr.startswith(b"bye\nleadline: wrote")


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"LEADLINE": "missing/out.leadline"}, "does not exist"),
        ({"LEADLINE": "/proc/out.leadline"}, "Cannot write"),
        ({"LEADLINE": "script.py"}, "not a profile"),
        ({"LEADLINE": "out.leadline", "LEADLINE_OPTIONS": "{"}, "not JSON"),
        ({"LEADLINE": "out.leadline", "LEADLINE_OPTIONS": '{"shape": 1}'}, "no option 'shape'"),
    ],
)
def test_the_program_runs_whatever_is_wrong(place, environment: dict[str, str], sentence: str) -> None:
    place.write("script.py", PROGRAM)
    plain = place.python("script.py")
    result = place.python("script.py", env=environment)
    assert (result.returncode, result.stdout) == (0, plain.stdout)
    error = result.stderr.decode()
    assert sentence in error
    assert error.endswith("This process is not measured.\n")
    assert error.count("\n") == 1
    assert [item.name for item in place.folder.iterdir()] == ["script.py"]


def test_a_session_that_has_ended_is_nobodys(place) -> None:
    """A daemon's child may find the variables of a session that is long over."""
    place.write("script.py", PROGRAM)
    result = place.python("script.py", env={"LEADLINE": "out.leadline", "LEADLINE_SESSION": "gone.leadline.part"})
    assert (result.returncode, result.stderr) == (0, b"")
    assert [item.name for item in place.folder.iterdir()] == ["script.py"]


def test_the_remains_of_a_killed_run_are_kept(place) -> None:
    place.write("kill.py", PROGRAM + "    import os\n    os.kill(os.getpid(), 9)\n")
    assert place.python("kill.py", env={"LEADLINE": "out.leadline"}).returncode == -9
    assert (place.folder / "out.leadline.part").is_dir()
    place.write("script.py", PROGRAM)
    result = place.python("script.py", env={"LEADLINE": "out.leadline"})
    assert b"leadline recover" in result.stderr.splitlines()[0]
    assert place.leadline("recover", "out-1.leadline.part").returncode == 0
    assert region_names(place.folder / "out.leadline") == ["work"]
    assert not leadline.open(str(place.folder / "out-1.leadline")).meta["complete"]


def test_no_file_descriptor_and_no_environment_is_left(place) -> None:
    place.write("script.py", "import os; print(sorted(os.listdir('/proc/self/fd')))")
    plain = place.python("script.py")
    assert place.python("script.py", env={"LEADLINE": "out.leadline"}).stdout == plain.stdout
