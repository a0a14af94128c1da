"""Kernels before, while and after torch.profiler records GPU work; run by the tests under `leadline run`."""

import importlib.util
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from fake_gpu import Kernel, hip, launch

hip().hipGetLastError()
# A torch for ROCm, as far as it says so.
place = Path(importlib.util.find_spec("torch").origin).with_name("version.py")
spec = importlib.util.spec_from_file_location("torch.version", place)
version = importlib.util.module_from_spec(spec)
spec.loader.exec_module(version)
version.hip = "6.1.0"
sys.modules["torch.version"] = version
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
