"""Samples that rest and go on, as an overhead limit has them: a thread is one row before and after."""

from __future__ import annotations

import subprocess

PROGRAM = """
import ctypes
from leadline.capture.api import CURRENT

library = ctypes.CDLL("./spin.so")
library.begin()
(cpu,) = [one for one in CURRENT.session._providers if one.name == "cpu"]
for _ in range(12):
    library.work(20)
    cpu.pause()
    library.work(5)
    cpu.resume()
ran = ctypes.c_double()
library.finish(ctypes.byref(ran))
print(json.dumps(ran.value))
"""
SPIN = """
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>
#include <unistd.h>
static pthread_t there;
static volatile int until_ms, at_ms, ending;
static double ran;
static double cpu(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}
static void* spin(void* none) {
  pthread_setname_np(pthread_self(), "spins");
  while (!ending) {
    if (cpu() * 1000 < until_ms) continue;
    at_ms = until_ms;
    usleep(200);
  }
  ran = cpu();
  return none;
}
void begin(void) { pthread_create(&there, 0, spin, 0); }
void work(int ms) {
  const int wanted = until_ms + ms;
  until_ms = wanted;
  while (at_ms < wanted) usleep(500);
}
void finish(double* said) {
  ending = 1;
  pthread_join(there, 0);
  *said = ran;
}
"""


def test_a_thread_without_python_is_one_row_however_often_samples_rest(sample, place) -> None:
    (place.folder / "spin.c").write_text(SPIN)
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-pthread", "spin.c", "-o", "spin.so"], cwd=place.folder, check=True
    )
    seen = sample(PROGRAM)
    tables = seen.profile.tree.tables
    names = [tables.strings[row] for row in tables["threads"]["name"].tolist()]
    assert names.count("spins") == 1
    ran_ns = tables["threads"]["cpu_ns"].tolist()[names.index("spins")]
    assert 0.2e9 < ran_ns < 1.05e9 * seen.said  # samples rested, the thread did not
    sampled_ns = sum(
        seen.profile.tree.exclusive("cpu_sample").sum[node.row]
        for node in seen.profile.tree.walk()
        if any(above.name == "spins" for above in node.path())
    )
    assert 0 < sampled_ns < ran_ns
