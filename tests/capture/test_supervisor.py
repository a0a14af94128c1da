"""`leadline run` is the program, seen from outside: status, streams, arguments, signals. No framework needed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

WAIT_S = 60

INSPECT = """
    import __main__, json, os, sys
    print(json.dumps([__name__, __main__ is sys.modules["__main__"], sys.argv, sys.path, globals().get("__file__"),
                      str(__spec__ and __spec__.name), __package__, sys.flags.interactive, os.getcwd(), sys.executable,
                      sorted(name for name in vars(__main__)), sys.stdin.read(), __doc__]))
    sys.stderr.write("to stderr")
    sys.exit(3)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["script.py"],
        ["script.py", "-m", "x", "--", "--output", "-o", "-q", "--tr"],
        ["./script.py", "", "a b", "é"],
        ["folder/script.py", "--help"],
        ["folder"],
        ["-m", "pkg.mod", "--lr", "3"],
        ["-m", "pkg.mod", "--", "x"],
        ["-m", "pkg"],
    ],
    ids=" ".join,
)
def test_the_program_sees_what_it_would_see_without(place, arguments: list[str]) -> None:
    for name in ("script.py", "folder/script.py", "folder/__main__.py", "pkg/mod.py", "pkg/__main__.py"):
        place.write(name, INSPECT)
    place.write("pkg/__init__.py", "")
    plain = place.python(*arguments, input=b"text from stdin")
    measured = place.leadline("run", "-q", "-o", "x.leadline", *arguments, input=b"text from stdin")
    assert plain.returncode == measured.returncode == 3
    assert measured.stdout == plain.stdout
    assert measured.stderr == plain.stderr


def test_a_script_from_stdin(place) -> None:
    measured = place.leadline("run", "-q", "-o", "x.leadline", "-", "a", input=b"import sys; print(sys.argv, __name__)")
    assert measured.stdout == b"['-', 'a'] __main__\n"


@pytest.mark.parametrize(
    "program",
    [
        "raise ValueError('x')",
        "def f(n):\n    return 1 / n if n == 0 else f(n - 1)\nf(5)",
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e",
        "import sys\nsys.exit('a message')",
        "import sys\nsys.exit(300)",
        "import sys\nsys.exit(None)",
        "raise SystemExit",
        "raise KeyboardInterrupt",
        "this is no Python",
        "import os\nos._exit(4)",
        "import os\nos._exit(-1)",
        "import os\nos.abort()",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
        "import atexit\natexit.register(print, 'bye')\nraise RuntimeError('x')",
        "import sys\nsys.excepthook = lambda *a: print('hook', a[1])\nraise RuntimeError('x')",
        "import threading, sys\nt = threading.Thread(target=lambda: print('late'))\nt.start()\nsys.exit(2)",
        "import warnings\nwarnings.warn('careful')",
        "import ctypes\nctypes.string_at(0)",
    ],
)
def test_every_end_is_the_programs_end(place, program: str) -> None:
    place.write("script.py", program)
    plain = place.python("script.py")
    measured = place.leadline("run", "-q", "-o", "x.leadline", "script.py")
    assert measured.returncode == plain.returncode
    assert measured.stdout == plain.stdout
    assert measured.stderr == plain.stderr


def test_a_program_that_is_no_python_ends_as_it_ends(place) -> None:
    measured = place.leadline(
        "run", "-o", "x.leadline", "--", "sh", "-c", "echo out; echo $0 $1 >&2; exit 9", "zero", "-o"
    )
    assert measured.returncode == 9
    assert measured.stdout == b"out\n"
    assert b"zero -o\n" in measured.stderr
    assert b"Nothing was measured" in measured.stderr
    assert list(place.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run"], "run needs a program"),
        (["run", "-q"], "run needs a program"),
        (["run", "-m"], "-m needs a module"),
        (["run", "--"], "-- needs a command"),
        (
            ["run", "missing.py"],
            "Cannot run missing.py: there is no such file; check the name and the working directory.",
        ),
        (["run", "/bin/true"], "Cannot run /bin/true: it is a program, no script; write leadline run -- /bin/true ..."),
        (["run", "--", "no-such-command-anywhere"], "Cannot run no-such-command-anywhere: No such file"),
        (["run", "--", "script.py"], "leave out the --, or write -- python script.py"),
        (["run", "--", "./script.py"], "leave out the --, or write -- python ./script.py"),
        (["run", "-o", "missing/x.leadline", "script.py"], "does not exist"),
        (["run", "-o", "/proc/x.leadline", "script.py"], "Cannot write"),
        (["run", "-o", ".", "script.py"], "is a folder"),
        (["run", "-o", "script.py", "script.py"], "it is the file that is read"),
        (["run", "--trace", "steps=x", "script.py"], "Cannot read"),
        (["run", "--flush-interval", "0", "script.py"], "flush interval"),
    ],
)
def test_what_cannot_start_is_one_sentence(place, arguments: list[str], sentence: str) -> None:
    place.write("script.py", "print('ran')")
    before = sorted(place.folder.rglob("*"))
    result = place.leadline(*arguments)
    assert result.returncode == 2
    assert result.stdout == b""
    text = result.stderr.decode()
    assert sentence in text
    assert text.splitlines()[-1].startswith("leadline: ")
    assert "Traceback" not in text
    assert sorted(place.folder.rglob("*")) == before


def test_a_folder_without_permission(place) -> None:
    place.write("script.py", "print('ran')")
    locked = place.folder / "locked"
    locked.mkdir(mode=0o555)
    if os.access(locked, os.W_OK):
        pytest.skip("this user may write everywhere, so no folder can be closed to it")
    result = place.leadline("run", "-o", "locked/x.leadline", "script.py")
    assert result.returncode == 2
    assert b"no permission" in result.stderr


def test_the_banner_is_one_line(place) -> None:
    place.write("script.py", "print('ran')")
    result = place.leadline("run", "script.py")
    banner = result.stderr.decode().splitlines()[0]
    assert banner.startswith("leadline: measuring script.py into script.leadline: calling context tree")
    assert result.stdout == b"ran\n"


REPORTS_SIGNALS = """
    import os, signal, sys, time
    received = []
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, lambda number, frame: received.append(number))
    open("ready", "w").close()
    while not received or not os.path.exists("leave"):
        time.sleep(0.01)
    print(received)
    sys.exit(5)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_to_the_supervisor_reaches_the_program_once(place, number: signal.Signals) -> None:
    place.write("script.py", REPORTS_SIGNALS)
    with start(place, "run", "-q", "script.py") as process:
        wait_for(place.folder / "ready")
        process.send_signal(number)
        (place.folder / "leave").touch()
        output, _ = process.communicate(timeout=WAIT_S)
    assert (output, process.returncode) == (f"[{int(number)}]\n".encode(), 5)


def test_a_program_that_dies_of_a_forwarded_signal(place) -> None:
    place.write("script.py", "import time\nopen('ready', 'w').close()\ntime.sleep(1000)")
    with start(place, "run", "-q", "script.py") as process:
        wait_for(place.folder / "ready")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=WAIT_S)
    assert process.returncode == -signal.SIGTERM


def test_a_key_at_the_terminal_reaches_the_program_once(place) -> None:
    """Control-C in a terminal of its own: the kernel sends SIGINT to both, and the supervisor must not add another."""
    place.write("script.py", REPORTS_SIGNALS)
    leader, follower = os.openpty()
    script = (
        "import os, fcntl, termios, sys; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, "-m", "leadline.cli.main", "run", "-q", "script.py"],
        cwd=place.folder,
        stdin=follower,
        stdout=subprocess.PIPE,
        env=clean_environment(),
    )
    os.close(follower)
    wait_for(place.folder / "ready")
    os.write(leader, b"\x03")
    (place.folder / "leave").touch()
    output, _ = process.communicate(timeout=WAIT_S)
    os.close(leader)
    assert (output, process.returncode) == (b"[2]\n", 5)


def test_a_program_run_with_sigint_ignored_keeps_ignoring_it(place) -> None:
    place.write("script.py", "import signal; print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)")
    script = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.executable, sys.argv[1:])"
    )
    command = [sys.executable, "-m", "leadline.cli.main", "run", "-q", "script.py"]
    assert place.python("-c", script, *command).stdout == b"True\n"


def test_no_signal_stays_blocked_or_ignored_in_the_program(place) -> None:
    """The C library's own signals (above 31) are its own affair: it ignores one of them in whatever it spawns."""
    place.write(
        "script.py",
        """
        fields = dict(line.split(":") for line in open("/proc/self/status") if line.startswith(("SigBlk", "SigIgn")))
        print({name: hex(int(mask, 16) & 0x7FFFFFFF) for name, mask in fields.items()})
        """,
    )
    plain = place.python("script.py")
    assert place.leadline("run", "-q", "script.py").stdout == plain.stdout


def test_no_file_descriptor_is_added(place) -> None:
    place.write("script.py", "import os; print(sorted(os.listdir('/proc/self/fd')))")
    plain = place.python("script.py")
    # CPU samples keep what the kernel counts open.
    assert place.leadline("run", "-q", "--no-cpu-sample", "script.py").stdout == plain.stdout


def start(place, *arguments: str, **options) -> subprocess.Popen[bytes]:
    return place.start(sys.executable, "-m", "leadline.cli.main", *arguments, **options)


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + WAIT_S
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} did not appear"
        time.sleep(0.01)


TIMED = """
import ctypes, os, sys
from leadline.capture.supervisor import Command, run_program

class Event(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("notify", ctypes.c_int), ("rest", ctypes.c_char * 48)]

libc = ctypes.CDLL(None, use_errno=True)
event, timer = Event(None, 50, 0), ctypes.c_void_p()
every = (ctypes.c_long * 4)(0, 10_000_000, 0, 10_000_000)
import signal
signal.signal(50, lambda *_: None)
assert libc.timer_create(1, ctypes.byref(event), ctypes.byref(timer)) == 0
assert libc.timer_settime(timer, 0, every, None) == 0
ended = run_program(Command("sleep", ("sleep", "0.3")), dict(os.environ), lambda: None)
os._exit(ended.code if ended.signal is None else 100)
"""


def test_signals_that_nobody_sent_are_not_passed_on(tmp_path: Path) -> None:
    """Such as those of CPU samples, where `leadline run` is itself part of a measured program."""
    assert subprocess.run([sys.executable, "-c", TIMED], cwd=tmp_path, timeout=60, check=False).returncode == 0
