"""Two simulated CPUs under `tf.distribute`, and a collective between them; prints the number of steps."""

import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration() for _ in range(2)]
)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    weight = tf.Variable(tf.random.normal((64, 64)))


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


def main():
    batch = tf.random.normal((32, 64))
    for _ in range(40):
        train(batch)
    print(40)


main()
