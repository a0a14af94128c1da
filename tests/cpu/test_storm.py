"""Samples at the highest rate beside all that changes what they read; LEADLINE_STORM_SECONDS: how long (`make storm`)."""

from __future__ import annotations

import os
import platform
import shutil

import pytest
from tests.cpu.conftest import build

SECONDS = float(os.environ.get("LEADLINE_STORM_SECONDS", "3"))

pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="rules for other processors are not written"),
]

STORM = r"""
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
static volatile long alarms;
static void on_alarm(int number) { (void)number; ++alarms; }
long begin_alarms(void) {
  struct sigaction own;
  struct itimerval every = {{0, 1000}, {0, 1000}};
  memset(&own, 0, sizeof own);
  own.sa_handler = on_alarm;
  own.sa_flags = SA_RESTART;
  sigaction(SIGPROF, &own, 0);
  return setitimer(ITIMER_PROF, &every, 0);
}
long count_alarms(void) { return alarms; }
static void* little(void* rounds) {
  volatile long sum = 0;
  for (long i = 0; i < (long)rounds; ++i) sum += i;
  return 0;
}
long threads(long count) {
  for (long i = 0; i < count; ++i) {
    pthread_t one;
    if (pthread_create(&one, 0, little, (void*)100000) != 0) return i;
    pthread_join(one, 0);
  }
  return count;
}
"""

LIBRARY = """
typedef void (*callback)(void);
__attribute__((noinline)) void through(callback call) {
  volatile char frame[%d];
  frame[0] = 1;
  call();
  frame[1] = 2;
}
"""

SMALL_STACK = r"""
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif
static double cpu(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}
static void on_signal(int number) {
  const double begin = cpu();
  (void)number;
  while (cpu() - begin < 0.4) {
  }
}
/* Room for two frames of the kernel's, of which the second is that of a sample, and below it a page that nobody may touch. */
int spin_there(void) {
  const long least = getauxval(AT_MINSIGSTKSZ) ? getauxval(AT_MINSIGSTKSZ) : 2048;
  char* const pages = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack_t stack;
  struct sigaction own;
  memset(&stack, 0, sizeof stack);
  memset(&own, 0, sizeof own);
  mprotect(pages, 4096, PROT_NONE);
  stack.ss_sp = pages + 4096;
  stack.ss_size = 2 * least + 1024;
  own.sa_handler = on_signal;
  own.sa_flags = SA_ONSTACK;
  if (sigaltstack(&stack, 0) != 0 || sigaction(SIGUSR1, &own, 0) != 0) return 1;
  return raise(SIGUSR1);
}
"""


@pytest.mark.timeout(SECONDS * 3 + 200)
def test_a_storm_of_samples_beside_libraries_threads_forks_exceptions_and_other_signals(sample, place) -> None:
    build(place, "storm", STORM, "-pthread")
    for number, frame in enumerate((24, 1000)):
        build(place, f"library{number}", LIBRARY % frame)
    program = """
        import _ctypes, ctypes, itertools, os, signal, subprocess, sys, warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: of forks beside threads
        storm = ctypes.CDLL("./storm.so")
        assert storm.begin_alarms() == 0
        alarmed = []
        signal.signal(signal.SIGUSR2, lambda number, frame: alarmed.append(number))
        end = time.monotonic() + SECONDS
        done = {}
        def as_long(function):
            for round in itertools.count():
                if time.monotonic() > end:
                    break
                function(round)
            done[function.__name__] = round
        def libraries(round):
            library = ctypes.PyDLL(f"./library{round % 2}.so")
            heard = []
            library.through(ctypes.CFUNCTYPE(None)(lambda: heard.append(sorted(range(200), key=lambda one: -one))))
            assert len(heard) == 1
            _ctypes.dlclose(library._handle)
        def exceptions(round):
            def down(depth):
                if depth == 0:
                    raise ValueError
                down(depth - 1)
            for depth in (5, 800):
                try:
                    down(depth)
                except ValueError:
                    pass
        def threads(round):
            assert storm.threads(5) == 5
            one = threading.Thread(target=spin, args=(0.002,))
            one.start()
            one.join()
        def children(round):
            child = os.fork()
            if child == 0:
                os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            assert subprocess.run(["true"], env={}).returncode == 0
            time.sleep(0.5)
        def signals(round):
            os.kill(os.getpid(), signal.SIGUSR2)
            spin(0.005)
        sys.setrecursionlimit(5000)
        workers = [threading.Thread(target=as_long, args=(one,)) for one in (libraries, exceptions, threads, children)]
        for one in workers:
            one.start()
        as_long(signals)
        for one in workers:
            one.join()
        print(json.dumps([done, len(alarmed), storm.count_alarms()]))
        """
    seen = sample(program.replace("SECONDS", str(SECONDS)), "--native", hz=9999, timeout=SECONDS * 2 + 120)
    done, alarmed, alarms = seen.said
    assert set(done) == {"libraries", "exceptions", "threads", "children", "signals"} and all(done.values()), done
    assert 0 < alarmed <= done["signals"] and alarms > 0
    # Deeper stacks than there is room for, threads of C that are shorter than 50 ms, samples that nobody could book in
    # time: each is counted, and nothing else is lost.
    known = {"python_frames_truncated", "samples_missing", "samples_dropped", "native_frames_truncated"}
    assert set(seen.losses()) <= known, seen.losses()
    assert seen.samples > 0  # how many it may have is the machine's affair
    above = [node.path()[:-1] for node in seen.profile.tree.find(name="through")]
    python = [[frame.name for frame in path if frame.kind == "python"] for path in above]
    # whose Python could not be read, as in the moment in which a thread leaves it, stands at its thread
    assert {names[-1] for names in python if names} <= {"libraries"}


def test_a_handler_on_a_stack_that_has_no_room_for_samples_goes_on(sample, place) -> None:
    build(place, "small", SMALL_STACK)
    seen = sample(
        """
        import ctypes
        begin = time.thread_time()
        assert ctypes.CDLL("./small.so").spin_there() == 0
        ran = time.thread_time() - begin
        spin(0.1)
        print(json.dumps(ran))
        """,
        "--native",
        hz=997,
    )
    assert seen.said > 0.39
    assert seen.total_ns > 0.47e9  # what ran there is in the sample after it
    assert seen.losses() == {}
