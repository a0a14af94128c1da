"""Hostile programs, bare and measured (`make attack`): the exit status, both streams, the files left, the threads and the
descriptors that a program sees when it begins and ends, and what the programs that it starts inherit are the same.

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
    "profiling_timer": 'import signal, time\nn = [0]\ndef h(*_): n[0] += 1\nsignal.signal(27, h); signal.setitimer(signal.ITIMER_PROF, 0.01, 0.01)\nend = time.process_time() + 0.4\nwhile time.process_time() < end: pass\nsignal.setitimer(signal.ITIMER_PROF, 0)\nprint(n[0] > 5)',
    "alarm": "import signal, time\ndef h(*_): raise TimeoutError\nsignal.signal(14, h); signal.setitimer(signal.ITIMER_REAL, 0.3)\ntry: signal.pause()\nexcept TimeoutError: print('in time')",
    "interrupted_calls": 'import ctypes, threading, time\nc = ctypes.CDLL(None, use_errno=True)\ndef spin():\n end = time.monotonic() + 1.2\n while time.monotonic() < end: pass\nt = threading.Thread(target=spin); t.start()\nprint([c.poll(None, 0, 300), c.usleep(900000)], ctypes.get_errno()); t.join()',
    "drops_privileges": "import os\nif os.getuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\nprint(os.getuid() != 0 or 'user')",
    "umask": "import os\nos.umask(0o777)\nprint('closed to all')",
    "file_size": "import resource, select\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\ntry: open('x', 'w').write('a' * 9)\nexcept OSError: print('full')\nselect.select([], [], [], 1)",
    "no_threads": "import os, resource, threading\nif os.getuid() == 0: os.setuid(12345)\nresource.setrlimit(resource.RLIMIT_NPROC, (0, 0))\ntry: threading.Thread(target=print).start()\nexcept RuntimeError: print('none')",
    "cpu_limit": "import resource, signal\nsignal.signal(24, lambda *_: (print('enough'), exit(5)))\nresource.setrlimit(resource.RLIMIT_CPU, (int(sum(resource.getrusage(0)[:2])) + 1, 60))\nwhile True: pass",
    "random_numbers": 'import random\nrandom.seed(3)\nprint([random.random() for _ in range(3)], random.getstate()[1][:3])',
    "environment_cleared": "import os, subprocess, sys\nos.environ.clear()\nprint(subprocess.run([sys.executable, '-c', 'print(1)']).returncode)",
    "standard_error_gone": "import sys\nsys.stderr = None\nsys.stdout.write('a'); sys.stdout.close()",
    "builtins_replaced": "import builtins, json, os\nbuiltins.open = os.getpid = json.dumps = json.loads = None\nprint('replaced')",
    "import_replaced": "import builtins\nreal = builtins.__import__\ndef mine(*a, **k):\n if a[0] == 'colorsys': raise ImportError('never')\n return real(*a, **k)\nbuiltins.__import__ = mine\ntry: import colorsys\nexcept ImportError as e: print(e)",
    "modules_deleted": "import sys\nfor n in ('json', 'threading', 'os', 'signal', 'time'): sys.modules.pop(n, None)\nimport threading\nt = threading.Thread(target=print, args=('new',)); t.start(); t.join()",
    "strict_warnings": "import warnings\nwarnings.simplefilter('error')\nimport asyncio, sqlite3, xml.dom\nprint(len(warnings.filters) > 0)",
    "daemon_at_exit": "import threading, time\ndef f():\n while True: sum(range(999))\nfor _ in range(4): threading.Thread(target=f, daemon=True).start()\nsum(range(10**7)); print('leaves')",
    "thread_forks": 'import os, threading\ndef f():\n p = os.fork()\n if not p: os._exit(3)\n print(os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]))\nt = threading.Thread(target=f); t.start(); t.join()',
    "fork_leaves_by_exit": "import os, sys\np = os.fork()\nif p: os.waitpid(p, 0)\nprint('child' if not p else 'parent', flush=True)\nsys.exit(0 if p else 2)",
    "segmentation_fault": 'import ctypes\nctypes.string_at(0)',
    "bus_error": "import mmap, os\nf = os.open('b', os.O_RDWR | os.O_CREAT); os.ftruncate(f, 4096)\nm = mmap.mmap(f, 4096); os.ftruncate(f, 0)\nprint('now', flush=True); m[0]",
    "masked_signals": 'import os, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nos.kill(os.getpid(), 12)\nprint(signal.sigwait([12]))',
    "wakeup_descriptor": 'import os, signal\nr, w = os.pipe(); os.set_blocking(w, False); signal.set_wakeup_fd(w)\nsignal.signal(10, lambda *_: None); os.kill(os.getpid(), 10)\nprint(os.read(r, 9))',
    "own_surroundings": "import os, sys, threading, traceback, logging\nprint(sys.argv[0].endswith('program.py'), __file__ == sys.argv[0], __name__, sys.path[0] == os.path.dirname(__file__), len(traceback.extract_stack()), threading.active_count(), logging.root.handlers, sys.getswitchinterval(), sys.getrecursionlimit(), sys.gettrace(), sys.getprofile(), sorted(os.environ.get('PYTHONPATH', '').split(':')) != 1)",
    "collector": 'import gc\ngc.callbacks.clear(); gc.disable(); gc.set_threshold(1)\ngc.freeze(); print(gc.isenabled(), gc.collect() >= 0, gc.get_threshold())',
    "finalizers": "class A:\n def __del__(self): print('gone'); raise ValueError('late')\nimport sys, weakref\nsys.unraisablehook = lambda u: print(u.exc_value)\na = A(); weakref.finalize(a, print, 'final')",
    "broken_pool": "import os\nfrom concurrent.futures import ProcessPoolExecutor\nif __name__ == '__main__':\n with ProcessPoolExecutor(2) as p:\n  try: p.submit(os._exit, 3).result()\n  except Exception as e: print(type(e).__name__)",
    "children_ignored": "import os, signal, subprocess\nsignal.signal(17, signal.SIG_IGN)\nprint(subprocess.call(['true'])); print(os.system('exit 3') != 1)",
    "group_killed": "import os, signal\nos.setsid(); print('alone', flush=True); os.killpg(0, signal.SIGTERM)",
    "subinterpreter": "import _xxsubinterpreters as s\ni = s.create(); s.run_string(i, 'import math; x = math.pi'); s.destroy(i); print('ended')",
    "shallow": "import sys\nsys.setrecursionlimit(40)\ndef f(n): return f(n + 1)\ntry: f(0)\nexcept RecursionError: print('shallow')",
    "sleep_replaced": "import time, threading\ntime.sleep = threading.Thread.start = None\nprint('replaced')",
    "one_core": 'import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(len(os.sched_getaffinity(0)))',
    "descriptors_of_children": "import subprocess, sys\nfor _ in range(5): print(subprocess.run([sys.executable, '-S', '-E', '-c', 'import os; print(sorted(os.listdir(\"/proc/self/fd\")))'], close_fds=False, capture_output=True, text=True).stdout)",
    "threads_known": "import threading\nprint([t.name for t in threading.enumerate()], threading.active_count())",
    "nested_run": "import subprocess, sys\nr = subprocess.run([sys.executable, '-m', 'leadline', 'run', '-q', '-o', 'inner.leadline', '-c', 'print(7)'], capture_output=True, text=True)\nprint(r.returncode, r.stdout, r.stderr)",
}  # fmt: skip


OWN_DESCRIPTORS, THREADS = 32, 500
"""Of Leadline beyond one for each thread: that of a thread which has just ended is closed with the next look at it."""
PROBED = ("attack_probe.py", "bare.seen", "measured.seen", "__pycache__")
PROBE = Path(__file__).with_name("attack_probe.py")


def ended(command: list[str], folder: Path) -> tuple[int, bytes, bytes, list[str]]:
    folder.mkdir(parents=True)
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
    files = sorted(path.name for path in folder.iterdir() if not path.name.startswith("core"))
    return done.returncode, done.stdout, done.stderr, files


def seen(path: Path, died: bool) -> tuple[list[str], int]:
    """What is to be equal, and the most descriptors that there were beyond one for each thread. Processes end in any
    order. A program that dies of a signal runs on for the milliseconds that its last segment takes."""
    lines = [line for line in path.read_text().splitlines() if not (died and " ends with " in line)]
    counts = [line.split() for line in lines if line[0].isdigit()]
    folder = f"{path.parent}/{path.stem}"
    told = sorted(line.replace(folder, "") for line in lines if not line[0].isdigit())
    return told, max((int(count[0]) - int(count[3]) for count in counts), default=0)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_measured_program_ends_as_it_does_bare(name: str, options: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"import attack_probe\n{PROGRAMS[name]}")
    (tmp_path / PROBE.name).write_bytes(PROBE.read_bytes())
    bare = ended([sys.executable, str(program)], tmp_path / "bare")
    run = [sys.executable, "-m", "leadline", "run", "-q", "-o", str(tmp_path / "out.leadline"), *OPTIONS[options]]
    measured = ended([*run, str(program)], tmp_path / "measured")
    told = b"".join(line for line in measured[2].splitlines(keepends=True) if not line.startswith(b"leadline: "))
    assert (measured[0], measured[1], told, measured[3]) == (bare[0], bare[1], bare[2], bare[3])
    (told, held), (told_bare, held_bare) = (seen(tmp_path / f"{one}.seen", bare[0] < 0) for one in ("measured", "bare"))
    assert told == told_bare != []
    assert held - held_bare <= (THREADS if name == "threads" else OWN_DESCRIPTORS)
    left = {path.name for path in tmp_path.iterdir()} - {"program.py", "bare", "measured", "out.leadline", *PROBED}
    assert not left, left
