"""A program that uses TensorFlow's profiler itself, again and again; prints its runs and its traces with the function."""

import sys
import time
from pathlib import Path

import tensorflow as tf


@tf.function
def own_step(x):
    return tf.reduce_sum(tf.nn.relu(x @ x))


def main():
    folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
    x, ran, traces = tf.ones((64, 64)), 0, 0
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        for _ in range(20):
            own_step(x)
        place = folder / str(traces)
        tf.profiler.experimental.start(str(place))
        for _ in range(5):
            own_step(x)
        tf.profiler.experimental.stop()
        ran += 25
        [file] = place.glob("plugins/profile/*/*.xplane.pb")
        assert b"own_step" in file.read_bytes()
        traces += 1
    print(ran, traces)


main()
