"""Who may import whom: the table of ARCHITECTURE.md as data, read by check_imports.py."""

from __future__ import annotations

# folder of native/: folders whose headers it may include (its own is always allowed)
NATIVE: dict[str, set[str]] = {
    "base": set(),
    "audit": set(),
    "unwind": set(),
    "cct": {"base"},
    "stack": {"base"},
    "monitor": {"stack", "base"},
    "providers": {"gpu", "base"},  # provider.h, the interface; gpu_provider.h, what those of GPUs share
    "gpu": {"monitor", "base"},
    "providers/torch": {"providers", "monitor", "base"},
    "providers/nvidia": {"providers", "gpu", "monitor", "base"},
    "providers/amd": {"providers", "gpu", "monitor", "base"},
    "providers/accelerator": {"providers", "gpu", "monitor", "audit", "base"},
    "providers/pjrt": {"providers", "gpu", "monitor", "base"},
    "providers/cpu": {"providers", "monitor", "stack", "unwind", "base"},
    "writer": {"cct", "base"},
    "collector": {"monitor", "stack", "cct", "writer", "base"},
    "session": {
        "base",
        "cct",
        "stack",
        "monitor",
        "writer",
        "collector",
        "providers",
        "providers/torch",
        "providers/nvidia",
        "providers/amd",
        "providers/accelerator",
        "providers/pjrt",
        "providers/cpu",
    },
    "tools": {"base"},
    "backends/device": set(),
    "backends/sanitizer": {"backends/device", "gpu", "base"},
    "accesses": set(),
    "managed": set(),
    "bindings": {
        *("session", "tools", "gpu", "providers", "providers/cpu", "providers/nvidia", "providers/amd"),
        "backends/sanitizer",
        *("stack", "unwind", "base"),
    },
    "offline": set(),
    "xla": set(),
    "testing": {
        "base",
        "cct",
        "unwind",
        "stack",
        "monitor",
        "writer",
        "collector",
        "gpu",
        "providers",
        "providers/torch",
        "providers/nvidia",
        "providers/amd",
        "backends/device",
        "backends/sanitizer",
    },
}
# the public C API, <leadline/monitor.h>
PUBLIC_HEADER_USERS = {
    "monitor",
    "gpu",
    "providers",
    "providers/torch",
    "providers/nvidia",
    "providers/amd",
    "providers/accelerator",
    "providers/pjrt",
    "providers/cpu",
    "collector",
    "session",
    "tools",
    "backends/sanitizer",
    "bindings",
    "testing",
}
# x_test.cpp may use these besides what its folder may
NATIVE_TESTS: set[str] = {"testing"}
# headers of others: (prefixes of the include, the only places for it as folder or folder/file prefix)
NATIVE_FOREIGN: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    (("Python.h", "frameobject.h", "internal/pycore"), ("bindings/", "stack/python")),
    (
        ("nanobind/",),
        (
            "bindings/",
            "offline/arrays",
            "offline/cubin_module",
            "offline/events_module",
            "offline/simulate_module",
            "xla/module",
        ),
    ),
    (("torch/", "ATen/", "c10/"), ("providers/torch/",)),
    (("cuda", "cupti", "nvml", "nvtx"), ("providers/nvidia/",)),
    (("sanitizer",), ("backends/sanitizer/",)),
    (("hip/", "rocprofiler", "roctracer"), ("providers/amd/",)),
    (("x86intrin.h", "immintrin.h", "cpuid.h"), ("base/clock", "accesses/masked")),
    (("doctest/",), ("testing/",)),  # and every x_test.cpp
]

# package of python/leadline: packages it may import (its own and PYTHON_ALWAYS are always allowed)
PYTHON: dict[str, set[str]] = {
    "": {"capture"},  # __init__.py, _autostart.py, _package.py, _output.py, schema.py
    "xla": set(),
    "capture": {"_native", "_xla", "xla"},
    "tools": {"_native"},
    "attach": {"_native"},
    "profiles": set(),
    "trace": {"steps", "profiles", "xla"},
    "steps": {"profiles"},
    "opening": {"steps", "profiles", "trace"},
    "analysis": {"steps", "whatif", "trace", "profiles"},
    "verdict": {"steps", "analysis", "trace", "profiles"},
    "whatif": {"steps", "opening", "trace", "profiles"},
    "convert": {"steps", "profiles", "trace"},
    "query": {"steps", "profiles", "analysis"},
    "compare": {"steps", "profiles", "analysis", "opening"},
    "report": {"steps", "profiles", "trace", "analysis", "verdict", "whatif", "query", "compare"},
    "agent": {"steps", "profiles", "opening", "trace", "analysis", "verdict", "whatif", "query", "compare", "report"},
    "testing": {"capture", "profiles", "compare", "report"},
    "distributed": {"profiles"},
    "notebook": {"steps", "capture", "profiles", "analysis", "verdict", "query", "compare", "report"},
    "terminal": {"steps", "profiles", "analysis", "verdict", "report"},
    "cli": {
        "steps",
        "",
        "capture",
        "tools",
        "attach",
        "profiles",
        "opening",
        "trace",
        "analysis",
        "verdict",
        "whatif",
        "query",
        "compare",
        "convert",
        "report",
        "agent",
        "terminal",
        "distributed",
        "demo",
    },
    "demo": set(),
}
# files of the package itself that count as part of a folder
PYTHON_FILES = {"__main__.py": "cli"}
PYTHON_ALWAYS = {"schema", "_version", "__version__", "_package", "_output"}
# Compiled modules of this package.
PYTHON_NATIVE = {"_cubin", "_events", "_native", "_simulate", "_xla"}
# The public entry points open offline packages when they are called, never when they are imported.
# A profile opens what answers questions about it when it is asked.
PYTHON_LAZY: dict[str, set[str]] = {
    "": {"opening", "compare", "_native"},
    "xla": {"_xla"},
    "capture": {"tools"},  # only where `--tool` asks for it
    "trace": {"_events", "_xla"},
    "whatif": {"_simulate"},
    "profiles": {"_cubin", "analysis", "query", "notebook", "trace", "verdict"},
}
# third-party packages, at the top of a file
PYTHON_FOREIGN: dict[str, set[str]] = {
    "": set(),
    "xla": set(),
    "capture": set(),
    "tools": {"numpy"},
    "attach": set(),
    "profiles": {"numpy"},
    "steps": {"numpy"},
    "trace": {"numpy"},
    "opening": set(),
    "analysis": {"numpy"},
    "verdict": {"numpy"},
    "whatif": {"numpy"},
    "query": {"numpy"},
    "compare": {"numpy"},
    "agent": set(),
    "distributed": set(),
    "notebook": set(),
    "terminal": {"numpy", "rich", "textual"},
    "testing": {"pytest"},
    "convert": {"numpy"},
    "report": {"numpy", "rich"},
    "cli": {"numpy", "rich"},
    "demo": {"torch", "leadline"},
}
# third-party packages inside a function only: frameworks that the profiled program brings
PYTHON_FOREIGN_LAZY: dict[str, set[str]] = {
    "distributed": {"dask", "distributed"},
    "profiles": {"fsspec", "symbolic"},
    "capture": {
        "torch",
        "numpy",
        "tomli",
        "jax",
        "transformers",
        "lightning",
        "pytorch_lightning",
        "accelerate",
        "ignite",
        "composer",
        "wandb",
        "mlflow",
        "fsspec",
    },
    "cli": {"torch"},
    "whatif": {"pyarrow"},
    "agent": {"mcp"},
    "notebook": {"IPython"},
    "query": {"pandas", "polars", "pyarrow", "duckdb"},
}
