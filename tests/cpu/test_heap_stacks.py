"""Samples of threads whose stack pointer is where no signal may write: oneDNN's matrix products, which jaxlib brings
along, use a buffer of the heap as their stack.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import leadline

PROGRAM = """
import ctypes, sys, threading, time

def here(turns):
    return library.spend_on_heap(turns)

def there(turns):
    return library.spend_on_thread(turns)

def both(turns):
    written.extend([here(turns), there(turns)])

if "start" in sys.argv:  # threads that are there before measuring begins
    import leadline
    begun, ready = threading.Event(), threading.Event()
    def old(turns):
        ready.set()
        begun.wait()
        time.sleep(0.3)
        written.append(here(turns))
    waiting = threading.Thread(target=old, args=(300_000_000,))
    waiting.start()
    ready.wait()
    leadline.start(sys.argv[2], quiet=True, cpu_sample=1000)
    begun.set()
library = ctypes.CDLL(sys.argv[1])
library.spend_on_heap.argtypes = library.spend_on_thread.argtypes = [ctypes.c_long]
library.spend_on_heap.restype = library.spend_on_thread.restype = ctypes.c_long
written = []
if "start" in sys.argv:
    waiting.join()
time.sleep(0.2)
both(200_000_000)
thread = threading.Thread(target=both, args=(200_000_000,))
thread.start()
thread.join()
if "start" in sys.argv:
    leadline.stop()
print("bytes written:", sum(written), "of", len(written))
"""


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    """A program, and the library that it calls."""
    if platform.machine() != "x86_64":
        pytest.skip("the stack pointer is moved by x86-64 instructions")
    if shutil.which("cc") is None:
        pytest.skip("no C compiler is installed")
    library = tmp_path / "heap_stack.so"
    source = Path(__file__).with_name("heap_stack.c")
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", str(source), "-o", str(library), "-pthread"], check=True)
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    return [str(script), str(library)]


@pytest.mark.parametrize("options", [[], ["--native"]], ids=["python", "native"])
def test_samples_write_nothing_where_the_stack_pointer_is_in_the_heap(tmp_path, program, options):
    output = tmp_path / "p.leadline"
    command = [
        sys.executable,
        "-m",
        "leadline",
        "run",
        "-q",
        "--cpu-sample=1000",
        *options,
        "-o",
        str(output),
        *program,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "bytes written: 0 of 4\n"), done.stderr
    tree = leadline.open(output).tree
    sampled = tree.exclusive("cpu_sample")
    by_name = {}
    for node in tree.walk():
        by_name[node.name] = by_name.get(node.name, 0) + int(sampled.count[node.row])
    assert by_name["here"] > 20, "the threads that compute are sampled at their lines"


def test_threads_that_are_older_than_measuring_are_safe_as_well(tmp_path, program):
    output = tmp_path / "p.leadline"
    done = subprocess.run(
        [sys.executable, *program, str(output), "start"], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "bytes written: 0 of 5\n"), done.stderr
    tree = leadline.open(output).tree
    assert any(node.name == "old" and tree.inclusive("cpu_sample").count[node.row] > 10 for node in tree.walk())
