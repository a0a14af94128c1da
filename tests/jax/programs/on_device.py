"""The loop of `linear.py` where JAX's CPU passes for a GPU: XLA's profiler tells what ran in the layout of a GPU, without
numbers of runs, each operation as a kernel and, of matrix products, a second one."""

import jaxlib._profiler as profiler
from tests.importers.xspace_files import Line, Plane, space

from leadline import _xla
from leadline.capture.providers.jax import devices as jax_devices

Session = profiler.ProfilerSession


def redrawn(profile):
    found = _xla.profile(profile, ["program_id"], ["hlo_op", "hlo_module"])
    events, stats, strings = found["events"], found["stats"], found["strings"]
    kernels, launches = [], []
    rows = sorted(range(len(events["line"])), key=lambda row: events["start_ps"][row]) if "hlo_op" in stats else []
    for row in rows:
        if not stats["hlo_op"][row] or strings[events["name"][row]].startswith("end: "):
            continue
        operation, start = strings[stats["hlo_op"][row]], events["start_ps"][row] // 1000
        told = {
            "hlo_op": operation,
            "hlo_module": strings[stats["hlo_module"][row]],
            "program_id": stats["program_id"][row],
            "correlation_id": len(kernels) + 1,
        }
        lasted = max(events["duration_ps"][row] // 1000, 1)
        launches.append(("cuLaunchKernel", start, 5, told))
        kernels.append((f"{operation.partition('.')[0]}_kernel", start, lasted, told))
        if operation.startswith("dot"):
            kernels.append(("splitK_reduce", start + lasted, 1, told))
    host = Plane("/host:CPU", [Line("python", launches, 1)])
    return space(host, Plane("/device:GPU:0", [Line("Stream #7(Compute)", kernels, 7)]))


class OfDevice:
    def __init__(self, options):
        self.session = Session(options)

    def stop(self):
        return redrawn(self.session.stop())


profiler.ProfilerSession = OfDevice  # before JAX is there, as it would be in a release of its own
jax_devices.type_of = lambda device: "cuda"

from linear import main  # noqa: E402

main(200)
