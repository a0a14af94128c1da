"""Two processes under `tf.distribute`, a collective of theirs in every step; prints the number of steps."""

import json
import os
import socket
import subprocess
import sys

WORKER = "worker"
FIRST, LAST = 10_240, 32_000


def own_ports(count):
    """Ports below those that the system gives to whoever asks for any, so that nobody gets one of them between this and
    the servers' start; by the number of this process, so that no other test of this kind asks for the same."""
    found = []
    for place in range(count * 10):
        port = FIRST + (os.getpid() * count * 10 + place) % (LAST - FIRST)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:  # a server of this machine has it
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise SystemExit("no free ports")


def main():
    if len(sys.argv) == 1:
        hosts = [f"127.0.0.1:{port}" for port in own_ports(2)]
        workers = []
        for index in range(2):
            config = json.dumps({"cluster": {"worker": hosts}, "task": {"type": "worker", "index": index}})
            environment = {**os.environ, "TF_CONFIG": config, "RANK": str(index), "WORLD_SIZE": "2"}
            workers.append(subprocess.Popen([sys.executable, __file__, WORKER], env=environment))
        for worker in workers:
            assert worker.wait(150) == 0
        print(30)
        return
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weight = tf.Variable(tf.ones((64, 64)))

    def replica(batch):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.relu(batch @ weight))
        gradient = tape.gradient(loss, weight)
        total = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradient)
        weight.assign_sub(0.1 * total)
        return loss

    @tf.function
    def train(batch):
        return strategy.run(replica, args=(batch,))

    batch = tf.random.normal((32, 64))
    for _ in range(30):
        train(batch)


main()
