"""Profiles that several tests draw."""

from __future__ import annotations

from leadline.profiles import Profile
from leadline.profiles.build import build
from leadline.profiles.builder import ProfileBuilder

LIB = "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py"

TRAINING = f"""
process train.py | pid=10
  thread MainThread | tid=10 wall_ns=10000000 operator_ns=6000000 data_ns=1000000 cpu_ns=9000000
    python <module> @ /home/ada/gpt/train.py:88
      python main @ /home/ada/gpt/train.py:70
        phase data loading
          operator aten::stack | time=300000/3 call_time=300000/3
        phase optimizer
          operator Optimizer.step#SGD.step | time=200000/2 call_time=500000/2
            operator aten::add_ | time=300000/6 call_time=300000/6
        python Module._call_impl @ {LIB}:1784
          module model [GPT]
            python GPT.forward @ /home/ada/gpt/model/gpt.py:30
              phase forward
                module model.h.0 [Block]
                  python Block.forward @ /home/ada/gpt/model/gpt.py:12
                    operator aten::linear | time=100000/2 call_time=1100000/2
                      operator aten::addmm | time=1000000/2 call_time=1000000/2 alloc_bytes=4096/2 peak_live_bytes=2048
                      phase backward
                        operator AddmmBackward0 | time=100000/2 call_time=1600000/2
                          operator aten::mm | time=1500000/4 call_time=1500000/4 alloc_bytes=8192/2
                module model.h.1 [Block]
                  python Block.forward @ /home/ada/gpt/model/gpt.py:12
                    operator aten::linear | time=100000/2 call_time=1500000/2
                      operator aten::addmm | time=1400000/2 call_time=1400000/2 alloc_bytes=4096/2 peak_live_bytes=6144
"""


def training() -> Profile:
    """Two steps of a model with two equal blocks: forward, backward, optimizer, data loading, memory; 5,000,000 ns in all."""
    profile = build(TRAINING, losses=[("free_unknown", 12, ""), ("provider_unavailable", 1, "CUPTI is held by nsys.")])
    profile.meta.update(
        started_at_ns=1_795_238_400_000_000_000,
        wall_ns=12_000_000,
        program={"argv": ["train.py", "--steps", "2"], "python": "3.11.7", "cwd": "/home/ada/gpt"},
        available={"torch": {"ok": True, "version": "2.13.0"}},
        asked={"memory": True, "shapes": False, "max_nodes": 10},
        host={"hostname": "atlas", "system": "Linux-6.1", "machine": "x86_64", "cpus": 8},
        cost={"callbacks_ns": 120_000, "events": 40, "held_bytes": 65_536, "percent": 1.0},
    )
    return profile


HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a;b c\td\ne",
    "\x1b]0;title\x07\x1b[31m",
    "| ` ``` | <b>&amp;</b> @user #1 $x$ [l](javascript:alert(1))",
    "\u202egnp.exe \u2028\u2029 漢字 🎉",
    "'\"\\${x}`@@DATA@@",
    "__proto__",
    "constructor",
    "",
]


def hostile() -> Profile:
    """Names, files and sentences meant to break out of every format."""
    builder = ProfileBuilder()
    process = builder.process(HOSTILE[0], pid=1, rank=0)
    thread = builder.thread(process, HOSTILE[1], tid=1, wall_ns=1000, operator_ns=500, cpu_ns=700)
    node = builder.node_of_thread(thread)
    for i, name in enumerate(HOSTILE):
        python = builder.child(node, builder.frame("python", name, file=name, line=i + 1))
        module = builder.child(python, builder.frame("module", name, module=HOSTILE[i - 1]))
        phase = builder.child(module, builder.frame("phase", name))
        region = builder.child(phase, builder.frame("region", name))
        operator = builder.child(region, builder.frame("operator", name, detail=HOSTILE[0]))
        builder.add(operator, "time", 100 + i)
        builder.add(operator, "call_time", 100 + i)
        builder.add(operator, "alloc_bytes", 64)
        builder.add(operator, "peak_live_bytes", 64)
        kernel = builder.child(operator, builder.frame("kernel", name))
        while builder.devices() < 1:
            builder.device(process, 0, HOSTILE[0])
        builder.add(kernel, "gpu_time", 50, device=0, stream=7)
    builder.loss(process, "internal_error", 1, HOSTILE[1])
    meta = {
        "program": {"argv": [HOSTILE[0], HOSTILE[2]], "cwd": HOSTILE[4], "python": HOSTILE[1]},
        "asked": {HOSTILE[0]: True},
        "available": {HOSTILE[1]: {"version": HOSTILE[0]}},
        "host": {"hostname": HOSTILE[0]},
        "leadline": HOSTILE[1],
        "wall_ns": 2000,
    }
    return builder.profile(meta)
