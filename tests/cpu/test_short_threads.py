"""Threads that end before a listing could meet them: those of `threading` are sampled, of others the amount is said."""

from __future__ import annotations

import shutil

import pytest
from tests.cpu.conftest import build

SHORT = """
ran = []
def short():
    begin = time.thread_time()
    spin(0.015)
    ran.append(time.thread_time() - begin)
"""


def test_threads_that_end_at_once_are_sampled(sample) -> None:
    seen = sample(
        SHORT
        + """
for _ in range(40):
    thread = threading.Thread(target=short)
    thread.start()
    thread.join()
print(json.dumps(sum(ran)))
"""
    )
    tree = seen.profile.tree
    whole = tree.inclusive("cpu_sample").sum
    found = sum(int(whole[node.row]) for node in tree.walk() if node.name == "short") / 1e9
    assert found == pytest.approx(seen.said, rel=0.15)
    assert seen.losses() == {}


def test_what_ended_before_it_was_seen_is_said(sample) -> None:
    """Threads that Python's `threading` knows nothing of, each shorter than the time between two listings."""
    seen = sample(
        SHORT
        + """
import _thread
for number in range(40):
    _thread.start_new_thread(short, ())
    while len(ran) == number:
        time.sleep(0.001)
print(json.dumps(sum(ran)))
"""
    )
    (sentence,) = (loss.detail for loss in seen.profile.losses if str(loss.kind) == "samples_missing")
    assert "threads that ended before they were seen" in sentence
    tree = seen.profile.tree
    listed = sum(  # threads that happened to be there at a listing
        int(tree.inclusive("cpu_sample").sum[thread.node.row])
        for thread in seen.profile.threads
        if thread.name != "main"
    )
    assert float(sentence.split()[0]) + listed / 1e9 == pytest.approx(seen.said, rel=0.1)


DEAF = r"""
#include <pthread.h>
#include <signal.h>
#include <time.h>
static double cpu(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}
static void* deaf(void* ran) {
  sigset_t all;
  sigfillset(&all);
  pthread_setname_np(pthread_self(), "deaf");
  pthread_sigmask(SIG_SETMASK, &all, 0);
  while (cpu() < 0.075) {
  }
  *(double*)ran += cpu();
  return 0;
}
double one_after_another(int count) {
  double ran = 0;
  while (count-- > 0) {
    pthread_t one;
    pthread_create(&one, 0, deaf, &ran);
    pthread_join(one, 0);
  }
  return ran;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")
def test_what_ran_after_it_was_seen_last_is_said(sample, place) -> None:
    """Nothing interrupts these threads, and nothing tells of their end."""
    build(place, "deaf", DEAF, "-pthread")
    seen = sample(
        """
        import ctypes
        library = ctypes.CDLL("./deaf.so")
        library.one_after_another.restype = ctypes.c_double
        print(json.dumps(library.one_after_another(20)))
        """
    )
    (sentence,) = (loss.detail for loss in seen.profile.losses if "ended" in loss.detail)
    assert "or that block all signals and ended after they were seen last" in sentence
    whole = seen.profile.tree.inclusive("cpu_sample").sum
    listed = sum(int(whole[thread.node.row]) for thread in seen.profile.threads if thread.name == "deaf")
    assert float(sentence.split()[0]) + listed / 1e9 == pytest.approx(seen.said, rel=0.1)
