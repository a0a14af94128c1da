"""Hostile programs, bare and measured: the exit status, both streams and the files left are the same (`make attack`).

Not a part of `make test`: each program runs once bare and once for each set of options.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

OPTIONS = {
    "plain": [],
    "samples": ["--cpu-sample=97", "--wait=97"],
    "native": ["--cpu-sample=97", "--native=yes"],
    "trace": ["--trace", "seconds=5", "--shapes"],
    "endpoint": ["--endpoint", "../port"],
    "often": ["--flush-interval", "0.2"],
}
PROGRAMS = {
    "exit_code": "raise SystemExit(7)",
    "exception": "1/0",
    "_exit": "import os; print('a', flush=True); os._exit(9)",
    "abort": "import os; os.abort()",
    "sigkill": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "sigterm_handler": "import os, signal\nsignal.signal(15, lambda *_: (print('caught'), exit(3)))\nos.kill(os.getpid(), 15)\nsignal.pause()",
    "handler_raises": "import os, signal\ndef h(*_): raise KeyError('x')\nsignal.signal(10, h)\ntry: os.kill(os.getpid(), 10)\nexcept KeyError: print('k')",
    "fork": "import os\nfor i in range(20):\n p = os.fork()\n if not p: os._exit(i)\n assert os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) == i\nprint('all')",
    "spawn": "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'print(1); raise SystemExit(4)']).returncode)",
    "exec": "import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'print(2); raise SystemExit(6)'])",
    "pool": "import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n for k in ('fork', 'spawn'):\n  with m.get_context(k).Pool(2) as p: print(p.map(f, range(5)))",
    "threads": "import threading\nt = [threading.Thread(target=sum, args=(range(999),)) for _ in range(500)]\n[x.start() for x in t]; [x.join() for x in t]; print(len(t))",
    "recursion": "import sys\ndef f(n): return f(n + 1)\ntry: f(0)\nexcept RecursionError: print('deep')",
    "closed_streams": "import os\nos.close(0)\nopen('kept', 'w').write('x')",
    "all_closed": "import os\nos.closerange(3, 1000)\nf = [open('f%d' % i, 'w') for i in range(64)]\n[x.write('own') for x in f]; [x.close() for x in f]\nassert all(open('f%d' % i).read() == 'own' for i in range(64))",
    "chdir_gone": "import os\nos.mkdir('d'); os.chdir('d'); os.rmdir('../d'); print('here')",
    "setprofile": "import sys\nn = [0]\ndef p(*_): n[0] += 1\nsys.setprofile(p); sum(map(abs, range(9))); sys.setprofile(None); print(n[0] > 0)",
    "asyncio": "import asyncio\nasync def f(i): await asyncio.sleep(0); return i\nasync def m(): return sum(await asyncio.gather(*map(f, range(2000))))\nprint(asyncio.run(m()))",
    "clocks": "import time\ntime.time = time.monotonic = time.perf_counter = lambda: 0.0\nprint(time.time())",
    "stdout_bytes": "import sys\nsys.stdout.buffer.write(bytes(range(256)))",
    "atexit": "import atexit\natexit.register(print, 'last')\nprint('first')",
    "generators": "def g():\n try: yield 1\n finally: print('end')\nx = g(); next(x)\nprint('left open')",
    "memory": "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))\ntry: bytearray(1 << 36)\nexcept MemoryError: print('none')",
    "replaced_threading": "import _thread, threading, time\nm = _thread.get_ident()\nthreading.get_ident = lambda: m if _thread.get_ident() == m else 7\nthreading._allocate_lock = threading.Event = None\ntime.sleep(1); print(len(threading.enumerate()))",
    "few_files": "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (6, 6))\nf = []\ntry:\n while True: f.append(open('/dev/null'))\nexcept OSError: print('no more')",
    "regions": "import leadline\nfor n in ('', 'x' * 100000, '\\ud800', '\\x1b[31m', 'a\\0b'):\n with leadline.region(n): pass\nprint('ok')",
}  # fmt: skip


def ended(command: list[str], folder: Path) -> tuple[int, bytes, bytes, list[str]]:
    folder.mkdir(parents=True)
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
    files = sorted(path.name for path in folder.iterdir() if not path.name.startswith("core"))
    return done.returncode, done.stdout, done.stderr, files


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_measured_program_ends_as_it_does_bare(name: str, options: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAMS[name])
    bare = ended([sys.executable, str(program)], tmp_path / "bare")
    run = [sys.executable, "-m", "leadline", "run", "-q", "-o", str(tmp_path / "out.leadline"), *OPTIONS[options]]
    measured = ended([*run, str(program)], tmp_path / "measured")
    told = b"".join(line for line in measured[2].splitlines(keepends=True) if not line.startswith(b"leadline: "))
    assert (measured[0], measured[1], told, measured[3]) == (bare[0], bare[1], bare[2], bare[3])
    left = {path.name for path in tmp_path.iterdir()} - {"program.py", "bare", "measured", "out.leadline"}
    assert not left, left
