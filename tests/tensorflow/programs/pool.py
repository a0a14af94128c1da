"""Calls a function of several branches, made of a lambda, once for each element of tf.data; prints how often it ran."""

import sys
import time

import tensorflow as tf

import leadline

WIDTH = 300


def main():
    calls, ends = int(sys.argv[1]), time.monotonic() + 20
    weights = [tf.Variable(tf.random.normal((WIDTH, WIDTH))) for _ in range(6)]
    branches = tf.function(lambda x: tf.add_n([tf.sin(x @ weight) @ weight for weight in weights]))
    data = iter(tf.data.Dataset.from_tensors(tf.ones((8, WIDTH))).map(tf.tanh).repeat().prefetch(1))
    ran = 0
    while ran < calls and time.monotonic() < ends:
        branches(next(data))
        leadline.step()
        ran += 1
    print(ran)


main()
