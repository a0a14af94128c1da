"""A program that uses TensorFlow's profiler itself, in right and wrong orders that seeds choose: it prints what each
attempt came to, errors in their own words, and whether each trace has all that ran in it; at last it starts a server
and has that record."""

import random
import signal
import socket
import sys
import threading
from pathlib import Path

import tensorflow as tf
from tensorflow.python.profiler import profiler_v2 as internal
from tensorflow.python.profiler.internal import _pywrap_profiler as raw

profiler = tf.profiler.experimental


@tf.function
def own_step(x):
    return tf.reduce_sum(tf.nn.relu(x @ x))


class Orders:
    """One seed's attempts."""

    def __init__(self, seed, folder):
        self.random = random.Random(seed)
        self.folder = folder / str(seed)
        self.x = tf.ones((64, 64))
        self.calls = self.traces = 0
        self.held = []

    def run(self, most):
        for _ in range(self.random.randrange(1, most)):
            own_step(self.x)
            self.calls += 1

    def place(self):
        self.traces += 1
        return str(self.folder / str(self.traces))

    def written(self):
        files = sorted(self.folder.rglob("*.xplane.pb"), key=lambda path: path.stat().st_mtime_ns)
        return b"own_step" in files[-1].read_bytes()

    def start(self):
        profiler.start(self.place())
        self.run(5)

    def stop(self):
        profiler.stop()
        return self.written()

    def dropped(self):
        profiler.stop(save=False)

    def nested(self):
        with profiler.Profile(self.place()):
            self.run(5)
            with profiler.Profile(self.place()):
                self.run(5)

    def failing(self):
        with profiler.Profile(self.place()):
            self.run(5)
            raise KeyError("the program's own")

    def context(self):
        with profiler.Profile(self.place()):
            self.run(5)
        return self.written()

    def begin(self):
        session = raw.ProfilerSession()
        self.held.append(session)
        session.start(self.place(), {})
        self.run(5)

    def end(self):
        return b"own_step" in self.held.pop(self.random.randrange(len(self.held))).stop()

    def export(self):
        self.held.pop(self.random.randrange(len(self.held))).export_to_tb()
        return self.written()

    def forget(self):
        self.held.clear()

    def wrong(self):
        raw.ProfilerSession().start(3)

    def attempt(self):
        names = ["start", "start", "stop", "stop", "stop", "dropped", "context", "context", "nested", "failing"]
        names += ["begin", "begin", *(["end", "export", "forget"] if self.held else [])]
        name = self.random.choice(names)
        if self.random.random() < 0.3:
            thread = threading.Thread(target=self.told, args=(name,))
            thread.start()
            thread.join(60)
        else:
            self.told(name)
        self.run(30)

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
                    profiler.stop()
                else:
                    profiler.start(self.place())
                    on.append(True)
            except Exception as error:
                errors.append(str(error))
            signal.setitimer(signal.ITIMER_REAL, self.random.uniform(0.0005, 0.01))

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        for _ in range(500):
            own_step(self.x)
            self.calls += 1
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        if on:
            profiler.stop()
        print("interrupted", errors)

    def over(self):
        """What a wrong order leaves behind for good would make all that follows the same."""
        self.held.clear()
        internal._profiler = None


def serve(folder):
    """A server records a process that goes on; and a second one on its port."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    print("server", profiler.server.start(port))
    asked = threading.Thread(target=profiler.client.trace, args=(f"grpc://localhost:{port}", str(folder), 500))
    asked.start()
    x, calls = tf.ones((64, 64)), 0
    while asked.is_alive():
        own_step(x)
        calls += 1
    print("served", any(b"own_step" in path.read_bytes() for path in folder.rglob("*.xplane.pb")))
    return calls


def main(folder, seeds):
    calls = 0
    for seed in seeds:
        orders = Orders(seed, folder)
        for _ in range(10):
            for _ in range(5):
                orders.attempt()
            orders.over()
            orders.run(9)
        calls += orders.calls
    interrupted = Orders(0, folder)
    interrupted.interrupted()
    calls += interrupted.calls
    calls += serve(folder / "served")
    print(calls)


if __name__ == "__main__":
    main(Path(sys.argv[1]), list(map(int, sys.argv[2:])))
