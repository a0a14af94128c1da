"""Recorded with tensorflow-cpu 2.18.1 and 2.21.0 and TF_ENABLE_ONEDNN_OPTS=0: three steps of a small model and its input
pipeline. The profile is below FOLDER/plugins/profile; it was packed with `gzip -n`.

    python record_tf.py FOLDER
"""

import sys

import keras
import numpy as np
import tensorflow as tf


def main():
    x, y = np.random.rand(64, 32).astype("float32"), np.zeros((64,), "int64")
    model = keras.Sequential(
        [keras.layers.Dense(128, activation="relu", name="up"), keras.layers.Dense(4, name="head")]
    )
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(16).map(lambda a, b: (a * 2.0, b)).prefetch(2)
    model.fit(data, verbose=0)
    tf.profiler.experimental.start(sys.argv[1], tf.profiler.experimental.ProfilerOptions(python_tracer_level=0))
    for number, (a, b) in enumerate(data.take(3)):
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            model.train_on_batch(a, b)
            float(tf.reduce_sum(tf.linalg.matmul(a, a, transpose_b=True)))
    tf.profiler.experimental.stop()


main()
