"""Two processes of JAX on CPUs, which reduce gradients over each other in every step; prints the number of steps."""

import socket
import subprocess
import sys

STEPS = 40


def main():
    if len(sys.argv) == 1:
        with socket.socket() as held:
            # Held until the end, so that nobody else gets the port; gRPC's servers share one that is held like this.
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            held.bind(("127.0.0.1", 0))
            port = held.getsockname()[1]
            workers = [subprocess.Popen([sys.executable, __file__, str(number), str(port)]) for number in range(2)]
            for worker in workers:
                assert worker.wait(200) == 0
        print(STEPS)
        return
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{sys.argv[2]}", 2, int(sys.argv[1]))
    mesh = Mesh(np.array(jax.devices()), ("data",))

    def array(shape, *axes):
        full = np.full(shape, 0.01, np.float32)
        sharding = NamedSharding(mesh, PartitionSpec(*axes))
        return jax.make_array_from_callback(shape, sharding, lambda index: full[index])

    def loss_fn(weights, batch):
        return (jnp.tanh(batch @ weights) ** 2).mean()

    @jax.jit
    def train_step(weights, batch):
        loss, gradient = jax.value_and_grad(loss_fn)(weights, batch)
        return weights - 0.1 * gradient, loss

    weights, batch = array((64, 64)), array((32, 64), "data")
    for _ in range(STEPS):
        weights, loss = train_step(weights, batch)
    loss.block_until_ready()


main()
