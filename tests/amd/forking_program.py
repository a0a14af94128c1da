"""A program whose child wants the (fake) AMD GPU, forked before the parent starts HIP or later; run by the tests."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from fake_gpu import Kernel, hip, launch


def work(name):
    launch(Kernel(name, 50_000))
    hip().hipDeviceSynchronize()


if os.environ["FORK"] == "later":
    work(b"of_parent")
child = os.fork()
if child == 0:
    if "IDLE" not in os.environ:
        work(b"of_child")
    sys.exit(0)
os.waitpid(child, 0)
work(b"of_parent")
