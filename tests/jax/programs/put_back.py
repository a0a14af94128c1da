"""Measures a part of a program that goes on without, and prints how JAX was set before, meanwhile and afterwards."""

import json

import jax
from jax._src import source_info_util, traceback_util

import leadline

LIMIT = "jax_traceback_in_locations_limit"


def settings():
    paths = [*source_info_util._exclude_paths, *traceback_util._exclude_paths]
    return [getattr(jax.config, LIMIT), paths, len(jax._src.monitoring._event_listeners)]


@jax.jit
def f(x):
    return x + 1


before = settings()
leadline.start("put_back.leadline", quiet=True)
f(1.0)
meanwhile = settings()
leadline.stop()
after = settings()
leadline.start("again.leadline", quiet=True)
jax.config.update(LIMIT, 7)
f(2.0)
leadline.stop()
print(json.dumps({"before": before, "meanwhile": meanwhile, "after": after, "theirs": getattr(jax.config, LIMIT)}))
