"""Holds variables and tensors of known sizes, lets some go, and runs a function; sizes are those of the tests."""

import tensorflow as tf

MIB = 1024 * 1024


def keep(count):
    return [tf.random.normal((MIB // 4,)) for _ in range(count)]


def pass_by(count):
    for _ in range(count):
        tf.zeros((MIB // 2,)) + 1.0


@tf.function
def chain(x):
    y = tf.linalg.matmul(x, x)
    z = tf.nn.relu(y)
    return tf.reduce_sum(z)


def main():
    weight = tf.Variable(tf.ones((3 * MIB // 4,)))
    for _ in range(3):
        weight.read_value()
    held = keep(5)
    shaped = [tf.reshape(one, (512, 512)) for one in held]
    pass_by(4)
    for _ in range(40):
        chain(shaped[0])
    del held, shaped
    keep(2)


main()
