"""Records what TensorFlow 1's tracing tells of one call of a graph, with the release that runs it: the full trace, the
Chrome trace that TensorFlow makes of it, and beside them what its own protos say (`counts.json`); the log of the executor
is what the program writes to stderr.

    TF_CPP_VMODULE=executor=2 python record_tf1.py FOLDER 2>FOLDER/tensorflow-RELEASE.log && gzip -n FOLDER/*
"""

import json
import os
import sys
from pathlib import Path

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import numpy as np
import tensorflow as tf
from tensorflow.python.client import timeline

tf1 = tf.compat.v1
tf1.disable_eager_execution()


def dense(x, width, name):
    with tf1.variable_scope(name):
        weights = tf1.get_variable("weights", [x.shape[1], width])
        return tf.nn.relu(tf.matmul(x, weights, name="product"))


def main():
    x = tf1.placeholder(tf.float32, [64, 256], name="x")
    with tf1.name_scope("tower"):
        out = dense(dense(x, 128, "up"), 16, "down")
    loss = tf.reduce_mean(out * out, name="loss")
    step = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
    total = tf1.while_loop(lambda i, _: i < 3, lambda i, s: (i + 1, s + loss), [0, 0.0], name="loop")[1]
    chosen = tf1.cond(loss > 1e6, lambda: tf.exp(loss), lambda: tf.negative(loss), name="choice")
    told = tf1.RunMetadata()
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE, output_partition_graphs=True)
        feed = {x: np.ones((64, 256), "float32")}
        session.run([step, total, chosen], feed, options=options, run_metadata=told)
    place = Path(sys.argv[1], f"tensorflow-{tf.__version__}")
    place.with_name(place.name + ".run_metadata.pb").write_bytes(told.SerializeToString())
    drawn = timeline.Timeline(told.step_stats).generate_chrome_trace_format()
    place.with_name(place.name + ".timeline.json").write_text(drawn)
    nodes = [
        [device.device, node.node_name, node.all_start_nanos, node.all_end_rel_nanos, node.scheduled_nanos]
        for device in told.step_stats.dev_stats
        for node in device.node_stats
    ]
    place.with_name(place.name + ".nodes.json").write_text(json.dumps(nodes))


main()
