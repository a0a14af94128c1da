"""Two processes under `tf.distribute`, a collective of theirs in every step; prints the number of steps."""

import json
import os
import socket
import subprocess
import sys

WORKER = "worker"


def held_port():
    """A socket that keeps its port from everybody else; gRPC's servers share one that is held like this."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind(("127.0.0.1", 0))
    return held


def main():
    if len(sys.argv) == 1:
        held = [held_port() for _ in range(2)]
        hosts = [f"127.0.0.1:{one.getsockname()[1]}" for one in held]
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
