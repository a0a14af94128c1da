"""A program that uses XLA's profiler itself, in right and wrong orders that seeds choose: it prints what each attempt
came to, errors in their own words, and whether each trace has all that ran in it."""

import random
import signal
import socket
import sys
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
from jax._src import profiler as internal

try:
    from jaxlib import _profiler as raw
except ImportError:  # up to 0.6
    from jaxlib.xla_client import profiler as raw


@jax.jit
def step(x):
    return jnp.tanh(x @ x)


@jax.jit
def tick(x):
    return x + 1


class Sub(raw.ProfilerSession):
    """As a library would that adds to the class."""


def products(data):
    """How many products of matrices a trace has; JAX cannot read one before 0.8, so there at least the function."""
    if jax.__version_info__ < (0, 8):
        return float("inf") if b"step" in data else 0
    found = jax.profiler.ProfileData.from_serialized_xspace(data)
    names = [event.name for plane in found.planes for line in plane.lines for event in line.events]
    return sum(("dot" in name or "ynn_fusion" in name) and not name.startswith("end:") for name in names)


class Orders:
    """One seed's attempts."""

    def __init__(self, seed, folder):
        self.random = random.Random(seed)
        self.folder = folder / str(seed)
        self.x = jnp.ones((200, 200)) / 200
        self.runs = self.traces = self.since = 0
        self.held = []

    def ready(self):
        """The profiler is to have all that ran until here."""
        tick(self.x).block_until_ready()

    def run(self, most, *, ready=True):
        for _ in range(self.random.randrange(1, most)):
            self.x = step(self.x)
            self.runs += 1
            self.since += 1
        if ready:
            self.ready()

    def place(self):
        self.traces += 1
        return self.folder / str(self.traces)

    def written(self):
        files = sorted(self.folder.rglob("*.xplane.pb"), key=lambda path: path.stat().st_mtime_ns)
        return self.whole(files[-1].read_bytes())

    def whole(self, data):
        return "whole" if products(data) >= self.since else f"{products(data)} of {self.since}"

    def start(self):
        jax.profiler.start_trace(self.place())
        self.since = 0

    def stop(self):
        self.ready()
        jax.profiler.stop_trace()
        return self.written()

    def nested(self):
        with jax.profiler.trace(self.place()):
            self.since = 0
            self.run(9)
            with jax.profiler.trace(self.place()):
                self.run(9)

    def failing(self):
        with jax.profiler.trace(self.place()):
            self.since = 0
            self.run(9)
            raise KeyError("the program's own")

    def context(self):
        with jax.profiler.trace(self.place()):
            self.since = 0
            self.run(20)
        return self.written()

    def begin(self):
        kind = self.random.choice((raw.ProfilerSession, Sub))
        self.held.append(kind())
        self.since = 0 if len(self.held) == 1 else self.since

    def end(self):
        self.ready()
        return self.whole(self.held.pop(self.random.randrange(len(self.held))).stop())

    def forget(self):
        self.held.clear()

    def wrong(self):
        raw.ProfilerSession(3)

    def session(self):
        """Since 0.12."""
        one = jax.profiler.ProfileSession().start()
        self.since = 0
        self.run(9)
        return type(one.stop()).__name__

    def attempt(self):
        names = ["start", "start", "stop", "stop", "stop", "context", "context", "nested", "failing", "begin", "begin"]
        names += ["end", "end", "end", "forget"] if self.held else ["wrong"]
        names += ["session", "session"] if hasattr(jax.profiler, "ProfileSession") else []
        name = self.random.choice(names)
        elsewhere = self.random.random() < 0.3
        if elsewhere:
            thread = threading.Thread(target=self.told, args=(name,))
            thread.start()
            thread.join(60)
        else:
            self.told(name)
        self.run(40, ready=self.random.random() < 0.8)

    def told(self, name):
        try:
            print(name, getattr(self, name)())
        except Exception as error:
            print(name, type(error).__name__, error)

    def interrupted(self):
        """A signal handler that starts and stops traces, wherever it comes in."""
        on, errors = [], []

        def handler(*_):
            try:
                if on:
                    on.clear()
                    jax.profiler.stop_trace()
                else:
                    jax.profiler.start_trace(self.place())
                    on.append(True)
            except Exception as error:
                errors.append(str(error))
            signal.setitimer(signal.ITIMER_REAL, self.random.uniform(0.0005, 0.01))

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        for _ in range(500):
            self.x = step(self.x)
            self.runs += 1
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        if on:
            jax.profiler.stop_trace()
        print("interrupted", errors)

    def over(self):
        """What a wrong order leaves behind for good would make all that follows the same."""
        self.held.clear()
        internal._profile_state.__init__()


def serve():
    """A profiler server, and a second one."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    for _ in range(2):
        try:
            print("server", jax.profiler.start_server(port) is not None)
        except ValueError as error:
            print("server", error)


def main(folder, seeds):
    for seed in seeds:
        orders = Orders(seed, folder)
        for _ in range(12):
            for _ in range(5):
                orders.attempt()
            orders.run(9)
            orders.over()
        print("runs", orders.runs)
    interrupted = Orders(0, folder)
    interrupted.interrupted()
    print("runs", interrupted.runs)
    serve()


if __name__ == "__main__":
    main(Path(sys.argv[1]), list(map(int, sys.argv[2:])))
