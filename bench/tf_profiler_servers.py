"""How often TensorFlow's own profiler ends a process that serves others, without Leadline.

python bench/tf_profiler_servers.py [--runs N] [--results DIR]      needs tensorflow-cpu

Two workers of a MultiWorkerMirroredStrategy train; in each a thread opens sessions of TensorFlow's profiler of 30 ms
one after the other, as any sampling of it would. Counted are runs in which a worker ended by itself, with sessions and
without.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import socket
import subprocess
import sys
import threading
import time
from typing import Any

from common import add_results_option, machine, markdown_table, write_results

STEPS = 150


def worker(*, sessions: bool) -> None:
    """One of the two."""
    tf: Any = importlib.import_module("tensorflow")
    profiler = importlib.import_module("tensorflow.python.profiler.internal._pywrap_profiler")

    def record() -> None:
        while True:
            session: Any = profiler.ProfilerSession()
            session.start("", {"host_tracer_level": 2, "device_tracer_level": 0, "python_tracer_level": 0})
            time.sleep(0.03)
            session.stop()
            time.sleep(0.01)

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weight = tf.Variable(tf.ones((64, 64)))

    def replica(batch: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.relu(batch @ weight))
        total = tf.distribute.get_replica_context().all_reduce("SUM", tape.gradient(loss, weight))
        weight.assign_sub(0.1 * total)
        return loss

    train = tf.function(lambda batch: strategy.run(replica, args=(batch,)))
    if sessions:
        threading.Thread(target=record, daemon=True).start()
    batch = tf.random.normal((32, 64))
    for _ in range(STEPS):
        train(batch)
    os._exit(0)


def ends_well(*, sessions: bool) -> bool:
    """One run of both workers."""
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    hosts = [f"127.0.0.1:{one.getsockname()[1]}" for one in taken]
    for listening in taken:
        listening.close()
    started = []
    for index in range(2):
        config = json.dumps({"cluster": {"worker": hosts}, "task": {"type": "worker", "index": index}})
        words = [sys.executable, __file__, "--worker", *(["--sessions"] if sessions else [])]
        environment = {**os.environ, "TF_CONFIG": config, "TF_CPP_MIN_LOG_LEVEL": "3"}
        started.append(subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    try:
        return [one.wait(120) for one in started] == [0, 0]
    except subprocess.TimeoutExpired:
        return False
    finally:
        for one in started:
            one.kill()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--sessions", action="store_true", help=argparse.SUPPRESS)
    add_results_option(parser)
    arguments = parser.parse_args()
    if arguments.worker:
        worker(sessions=arguments.sessions)
        return
    facts = machine()
    failed = {False: 0, True: 0}
    for _ in range(arguments.runs):
        for sessions in failed:
            failed[sessions] += not ends_well(sessions=sessions)
    rows = [[said, str(arguments.runs), str(failed[which])] for which, said in ((False, "none"), (True, "30 ms each"))]
    release = importlib.metadata.version("tensorflow-cpu")
    what = f"tensorflow-cpu {release}, two workers, {STEPS} steps; no Leadline in the processes.\n\n"
    found = {"runs": arguments.runs, "ended": {"without": failed[False], "with": failed[True]}}
    table = markdown_table(["sessions of its profiler", "runs", "in which a worker ended by itself"], rows)
    write_results(arguments.results, "tf_profiler_servers", facts, found, what + table)


if __name__ == "__main__":
    main()
