"""Trains two matrices with a tf.function over tf.data; prints how often it ran."""

import sys
import time

import tensorflow as tf


def head(hidden, second):
    return hidden @ second


def main():
    steps = int(sys.argv[1])
    first, second = tf.Variable(tf.random.normal((256, 256))), tf.Variable(tf.random.normal((256, 10)))

    @tf.function
    def train_step(batch, label):
        with tf.GradientTape() as tape:
            hidden = tf.nn.relu(batch @ first)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(label, head(hidden, second)))
        for variable, gradient in zip((first, second), tape.gradient(loss, (first, second)), strict=True):
            variable.assign_sub(0.01 * gradient)
        return loss

    data = tf.data.Dataset.from_tensor_slices((tf.random.normal((512, 256)), tf.zeros((512,), tf.int64)))
    ran, ends = 0, time.monotonic() + 20
    for batch, label in data.map(lambda x, y: (x * 2.0, y)).batch(64).repeat().prefetch(2):
        train_step(batch, label)
        tf.linalg.matmul(batch, batch, transpose_b=True)
        ran += 1
        if ran == steps or time.monotonic() > ends:
            break
    print(ran)


main()
