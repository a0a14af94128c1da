"""Lets JAX make a client of the plug-in that it was told of in the environment."""

import ctypes
import os
import sys

import jax

library = ctypes.CDLL(os.environ["FAKE_PLUGIN"])
library.GetPjrtApi()
if len(sys.argv) > 1:
    library.fake_version(int(sys.argv[1]))
else:
    library.fake_fail(10)  # of what JAX asks a client that it has, little is played

try:
    print(jax.devices())
except Exception as error:
    print(str(error).replace("\n", " "))
