"""The clock of the day as a test sets it, in a program that it starts: CLOCK_REALTIME is moved, no other clock is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

# What stands in the file named by SET_BY (seconds, as text of fixed length) is added to CLOCK_REALTIME.
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static const char *seconds;
__attribute__((constructor)) static void begin(void) {
  int file = open(getenv("SET_BY"), O_RDONLY | O_CLOEXEC);
  seconds = file < 0 ? "0" : mmap(0, 16, PROT_READ, MAP_SHARED, file, 0);
  if (file >= 0) close(file);
}
int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*theirs)(clockid_t, struct timespec *);
  if (!theirs) theirs = dlsym(RTLD_NEXT, "clock_gettime");
  int result = theirs(clock, now);
  if (clock == CLOCK_REALTIME && seconds) now->tv_sec += atol(seconds);
  return result;
}
"""


def make(folder: Path) -> dict[str, str]:
    """The variables of programs whose clock `set_clock` sets; `cc` compiles what they load."""
    (folder / "clock.c").write_text(CLOCK)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "clock.c", "-o", "clock.so", "-ldl"], cwd=folder, check=True)
    variables = {"SET_BY": str(folder / "set_by"), "LD_PRELOAD": str(folder / "clock.so")}
    Path(variables["SET_BY"]).write_text("0".ljust(15) + "\n")
    return variables


def set_clock(seconds: int, set_by: str | None = None) -> None:
    """From now on the clock is `seconds` before that of the system; in the programs that have `set_by` of `make`."""
    with open(set_by or os.environ["SET_BY"], "r+") as file:  # noqa: PTH123  # one write, in its place
        file.write(f"{seconds:<15}")
