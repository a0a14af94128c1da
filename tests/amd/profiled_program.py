"""Kernels before, while and after torch.profiler records GPU work; run by the tests under `leadline run`."""

import sys
from importlib.machinery import PathFinder
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from fake_gpu import Kernel, hip, launch

hip().hipGetLastError()


class Rocm(PathFinder):
    """Finds a torch that says that it is for ROCm."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        spec = super().find_spec(name, path, target) if name == "torch.version" else None
        if spec is not None:
            execute = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (execute(module), vars(module).update(cuda=None, hip="6.1.0"))
        return spec


sys.meta_path.insert(0, Rocm)
import torch  # noqa: E402

before, meanwhile, after = (Kernel(name, 10_000) for name in (b"before", b"meanwhile", b"after"))
launch(before)
hip().hipDeviceSynchronize()
profiler = torch.autograd.profiler
activity = torch.autograd.ProfilerActivity
config = profiler.profile(use_kineto=True).config()
profiler._prepare_profiler(config, {activity.CPU, activity.CUDA})
profiler._enable_profiler(config, {activity.CPU})
launch(meanwhile)
hip().hipDeviceSynchronize()
profiler._disable_profiler()
launch(after)
hip().hipDeviceSynchronize()
