"""Writes the log of one of two processes of TensorFlow that hand each other tensors; start both, 1 in the background.

TF_CPP_VMODULE=executor=2,grpc_remote_worker=3,base_rendezvous_mgr=3 python record_tf_workers.py 0 2>worker-0.log
"""

import os
import sys
import time

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()


def main(task):
    cluster = tf1.train.ClusterSpec({"worker": ["localhost:23451", "localhost:23452"]})
    server = tf1.train.Server(cluster, job_name="worker", task_index=task)
    if task == 1:
        time.sleep(25)
        os._exit(0)
    with tf.device("/job:worker/task:0"):
        a = tf1.placeholder(tf.float32, [512, 512], name="a")
        with tf.name_scope("front"):
            hidden = tf.tanh(a)
    with tf.device("/job:worker/task:1"), tf.name_scope("back"):
        out = tf.reduce_sum(tf.matmul(hidden, hidden))
    with tf.device("/job:worker/task:0"):
        total = tf.add(out, 1.0, name="total")
    with tf1.Session(server.target) as session:
        for _ in range(2):
            session.run(total, {a: np.ones((512, 512), "float32")})
    os._exit(0)


main(int(sys.argv[1]))
