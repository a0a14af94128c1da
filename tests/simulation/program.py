"""A program drawn by a seed: regions that nest, cross and outlive each other, records that come late and in any order,
kernels of a fake GPU, threads that end, forks at any depth, pauses, windows, full disks, signals, steps of the system's
clock, and an end of any kind, below a supervisor or without. It counts for itself what was done; what the profile says is
compared with that.

One process after the other and one thread at a time, so that a seed is the same program each time. What is left to
chance is when threads of Leadline's run.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.nvidia import fake_gpu
from tests.stepped_clock import set_clock

import leadline
from leadline.capture.current import CURRENT

ENDS = ("stop", "stop", "open", "exit", "killed")
"""`open`: stopped with regions open; `exit`: os._exit; `killed`: SIGKILL."""
SUPERVISED_ENDS = (*ENDS, "orphaned", "terminated")
"""`orphaned`: the supervisor is killed, and the program goes on; `terminated`: the supervisor is asked to end."""
INTERVALS_S = (0.05, 1.0, 60.0)
LONGEST_S = 20.0
"""That anything which comes by itself is waited for."""


class Gpu:
    """A fake GPU whose records come as its seed says."""

    def __init__(self, draw: random.Random) -> None:
        import ctypes

        fake_gpu.load()
        driver = ctypes.CDLL(f"{os.environ['FAKES']}/libcuda.so.1")
        driver.fake_test_delivery.argtypes = [ctypes.c_int32, ctypes.c_size_t, ctypes.c_size_t]
        driver.fake_test_delivery(draw.randrange(3), draw.choice((0, 0, 3)), draw.choice((2, 64)))
        self.streams = [None, fake_gpu.new_stream(), fake_gpu.new_stream()]


class Program:
    """The process that is measured, and each child that it forks."""

    def __init__(self, seed: int, tell: Callable[[str], None]) -> None:
        self.draw = random.Random(seed)
        self.tell = tell
        self.gpu: Gpu | None = None
        self.interval_s = 0.0
        self.launched: Counter[str] = Counter()  # nanoseconds by kernel
        self.wrong: list[str] = []
        self.ended: Counter[str] = Counter()  # calls of regions by name
        self.booked: Counter[str] = Counter()  # nanoseconds by kernel
        self.sure: Counter[str] = Counter()  # calls that a segment holds for sure
        self.open: list[leadline.region] = []
        self.places: list[leadline.Place] = []
        self.paused = False
        self.full = False
        self.disk_was_full = False
        self.depth = 0

    def run(self, actions: int) -> None:
        kinds = ("calls", "begin", "end", "late", "thread", "fork", "pause", "window", "flush", "step", "full",
                 "signal", "generator", "launch", "clock")  # fmt: skip
        weights = (8, 6, 6, 5, 2, 1, 2, 2, 2, 2, 1, 2, 3, 6, 1)
        for kind in self.draw.choices(kinds, weights, k=actions):
            self.tell(kind)
            getattr(self, f"do_{kind}")()

    def name(self) -> str:
        return f"r{self.draw.randrange(6)}"

    def count(self, name: str, times: int = 1) -> None:
        if not self.paused:
            self.ended[name] += times

    def do_calls(self) -> None:
        name, times = self.name(), self.draw.randrange(1, 40)
        for _ in range(times):
            with leadline.region(name):
                pass
        self.count(name, times)

    def do_begin(self) -> None:
        if not self.paused and len(self.open) < 8:
            self.open.append(leadline.region(f"o{len(self.open)}").__enter__())

    def do_end(self) -> None:
        """Any that is open, not only the innermost."""
        if not self.paused and self.open:
            one = self.open.pop(self.draw.randrange(len(self.open)))
            one.__exit__(None, None, None)
            self.count(one._name)

    def do_generator(self) -> None:
        def suspended():  # type: ignore[no-untyped-def]
            with leadline.region("suspended"):
                yield
                with leadline.region("resumed"):
                    pass

        if self.paused:
            return
        several = [suspended() for _ in range(self.draw.randrange(1, 4))]
        for one in several:
            next(one)
        self.draw.shuffle(several)
        for one in several:
            one.close() if self.draw.random() < 0.5 else next(one, None)
        self.count("suspended", len(several))
        # `resumed` runs where the generator went on; it is not compared

    def do_late(self) -> None:
        """Records of a device, as its vendor hands them out: behind their launches, in any order."""
        place = leadline.place()
        if place is not None:
            self.places.append(place)
        self.draw.shuffle(self.places)
        while self.places and self.draw.random() < 0.6:
            kernel, took = f"k{self.draw.randrange(4)}", self.draw.randrange(1, 10_000)
            if leadline.book([("kernel", kernel)], {"gpu_time": took}, below=self.places.pop(), device="cuda:0"):
                self.booked[kernel] += took

    def do_launch(self) -> None:
        """Kernels, some of them waited for. A forked child cannot use the GPU."""
        name, took = f"g{self.draw.randrange(3)}", self.draw.randrange(1, 20_000)
        times, stream, waits = self.draw.randrange(1, 12), self.draw.randrange(3), self.draw.random() < 0.3
        if self.gpu is None or self.depth:
            return
        for _ in range(times):
            fake_gpu.launch(name.encode(), took, self.gpu.streams[stream])
        if waits:
            fake_gpu.runtime().cudaDeviceSynchronize()
        if not self.paused:
            self.launched[name] += took * times

    def do_clock(self) -> None:
        """The clock of the day is set; segments come as often as before. Not beside the fake GPU, which waits by it."""
        seconds = self.draw.choice((-86400, -1, 0, 1, 86400))
        if self.gpu is not None:
            return
        set_clock(seconds)
        if self.depth or self.full or self.interval_s > 0.1:
            return
        before, until = self.segments(), time.monotonic() + LONGEST_S
        while self.segments() == before:
            if time.monotonic() > until:
                return self.wrong.append("No segment is written since the clock was set.")
            threading.Event().wait(0.005)

    @staticmethod
    def segments() -> set[tuple[str, int]]:
        found = set()
        for path in Path("out.leadline.part").glob("*/*.segment"):
            try:
                found.add((path.name, path.stat().st_ino))
            except FileNotFoundError:  # replaced just now
                continue
        return found

    def do_thread(self) -> None:
        thread = threading.Thread(target=self.do_calls)
        thread.start()
        thread.join()

    def do_fork(self) -> None:
        if self.depth > 1 or self.full:
            return
        seed, way = self.draw.randrange(1 << 30), self.draw.choice(("exit", "exit", "killed"))
        answer, question = os.pipe()
        if not (pid := os.fork()):
            os.close(answer)
            self.draw, self.depth = random.Random(seed), self.depth + 1
            self.ended, self.booked, self.sure, self.open, self.places = Counter(), Counter(), Counter(), [], []
            self.run(4)
            CURRENT.native and CURRENT.native.flush()
            os.write(question, json.dumps([self.ended, self.booked, self.disk_was_full]).encode())
            os.kill(os.getpid(), signal.SIGKILL) if way == "killed" else os._exit(0)
        os.close(question)
        with os.fdopen(answer) as pipe:
            ended, booked, full = json.loads(pipe.read() or "[{}, {}, true]")
        os.waitpid(pid, 0)
        self.ended.update(ended)
        self.booked.update(booked)
        self.disk_was_full |= full
        if not full:
            self.sure.update(ended)

    def do_pause(self) -> None:
        leadline.resume() if self.paused else leadline.pause()
        self.paused = not self.paused

    def do_window(self) -> None:
        native = CURRENT.native
        if native is not None:
            native.trace_stop() if native.trace_is_open() else native.trace_start()

    def do_flush(self) -> None:
        if CURRENT.native is not None and CURRENT.native.flush() and self.depth == 0:
            self.sure = Counter({name: max(times, self.sure[name]) for name, times in self.ended.items()})

    def do_step(self) -> None:
        leadline.step()

    def do_full(self) -> None:
        """No file may grow beyond a kilobyte, or again."""
        self.full = not self.full
        self.disk_was_full |= self.full
        most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024 if self.full else most, most))

    def do_signal(self) -> None:
        def handle(*_: object) -> None:
            with leadline.region("handler"):
                pass
            self.count("handler")

        signal.signal(signal.SIGUSR1, handle)
        os.kill(os.getpid(), signal.SIGUSR1)


def main(seed: int, folder: Path, tell: Callable[[str], None] = lambda _: None, *, supervised: bool = False) -> None:
    """Run the program of a seed in `folder`; it leaves `told.json` there, and a profile or its parts. Does not return
    where its end is not `stop`. `supervised`: it is measured already."""
    os.chdir(folder)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    program = Program(seed, tell)
    program.interval_s = interval_of(seed)
    if program.draw.random() < 0.4:
        program.gpu = Gpu(program.draw)
    if not supervised:
        leadline.start("out.leadline", quiet=True, flush_interval_s=program.interval_s, memory=False)
    program.run(program.draw.randrange(5, 60))
    if program.full:
        program.do_full()
    end = program.draw.choice(SUPERVISED_ENDS if supervised else ENDS)
    tell(f"end: {end}")
    while end in ("stop", "orphaned", "terminated") and program.open:
        if program.paused:
            program.do_pause()
        program.do_end()
    told = {"ended": program.ended, "booked": program.booked, "sure": program.sure, "end": end,
            "launched": program.launched, "wrong": program.wrong,
            "full": program.disk_was_full, "open": [one._name for one in program.open]}  # fmt: skip
    if end == "terminated":
        told["sure"] = program.ended  # a signal waits for the last segment
    Path("told.json").write_text(json.dumps(told))
    if end == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif end == "exit":
        os._exit(0)
    elif end == "orphaned":
        os.kill(os.getppid(), signal.SIGKILL)
    elif end == "terminated":
        os.kill(os.getppid(), signal.SIGTERM)
        threading.Event().wait(LONGEST_S)
        os._exit(3)
    if not supervised:
        leadline.stop()


def interval_of(seed: int) -> float:
    """Seconds between segments."""
    return random.Random(f"{seed} interval").choice(INTERVALS_S)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path.cwd(), lambda action: print(action, flush=True), supervised=True)
