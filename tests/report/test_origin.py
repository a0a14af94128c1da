"""What the page says of a frame beyond its name: generated kernels, collectives, and details that are no JSON."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from leadline.profiles.builder import ProfileBuilder
from leadline.report import ReportOptions, build_report
from leadline.report.html import render_html

JS = Path(__file__).parents[1] / "js"
FUSED = {
    "operators": ["aten.relu", "aten.add"],
    "sources": [{"file": "/home/ada/model.py", "line": 7, "function": "f", "code": "return relu(x) + <y>"}],
}
GROUP = {"collective": "allreduce", "process_group": "3", "group_description": "tensor", "group_size": 8}


def profile():
    builder = ProfileBuilder()
    process = builder.process("train.py", pid=1)
    builder.device(process, 0, "GPU")
    node = builder.node_of_thread(builder.thread(process, "main", tid=1))
    operator = builder.child(node, builder.frame("operator", "record_param_comms", detail=json.dumps(GROUP)))
    for kind, name, above, detail in (
        ("kernel", "triton_poi_fused_add_relu_0", node, json.dumps(FUSED)),
        ("collective", "ncclDevKernel_AllReduce", operator, '{"collective": "AllReduce"}'),
        ("kernel", "broken", node, '{"operators": 5, "sources": [null, 3]} and more'),
        ("kernel", "odd", node, '{"operators": 5, "sources": [null], "constructor": {"a": [1]}}'),
    ):
        builder.add(builder.child(above, builder.frame(kind, name, detail=detail)), "gpu_time", 100, device=0, stream=7)
    return builder.profile()


def test_what_a_kernel_was_made_of_and_whom_a_collective_joins(tmp_path):
    chromium = shutil.which("chromium")
    if chromium is None or not (JS / "node_modules").exists():
        pytest.skip("Opening the page needs the program chromium and `npm ci` in tests/js.")
    made = profile()
    path = tmp_path / "report.html"
    path.write_text(render_html(made, build_report(made, ReportOptions(), "run.leadline")), encoding="utf-8")
    names = ["triton_poi_fused", "ncclDevKernel", "broken", "odd"]
    done = subprocess.run(
        ["node", "frame.mjs", str(path), *names], cwd=JS, env={**os.environ, "CHROMIUM": chromium},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    fused, collective, broken, odd = json.loads(done.stdout).values()
    assert "Made of" in fused and "aten.relu, aten.add" in fused
    assert "model.py:7" in fused and "return relu(x) + <y>" in fused
    assert "collective\tAllReduce" in collective  # NCCL's own word for it
    assert "process group\t3" in collective and "group description\ttensor" in collective
    assert "group size\t8" in collective
    assert broken.startswith("kernel\nbroken") and "Made of" not in broken
    assert odd.startswith("kernel\nodd") and 'constructor\t{"a":[1]}' in odd
