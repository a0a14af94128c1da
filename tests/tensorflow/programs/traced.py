"""Steps of a function whose nodes and inputs are known, with an eager product beside it: `plain`, `loop` or `keras`."""

import sys

import tensorflow as tf

import leadline

SIZE = 256


@tf.function
def chain(x):
    left = tf.sin(x) @ x
    right = tf.cos(x) @ x
    return left @ right


@tf.function
def loop(x):
    y = x
    for _ in tf.range(5):
        y = tf.sin(y) @ x
    return y


def main(way):
    x = tf.ones((SIZE, SIZE)) / SIZE
    data = iter(tf.data.Dataset.from_tensors(x).map(tf.tanh).repeat().prefetch(1))
    program = loop if way == "loop" else chain
    for _ in range(6):
        program(next(data))
        tf.linalg.matmul(x, x, transpose_b=True)
        leadline.step()


main(sys.argv[1])
