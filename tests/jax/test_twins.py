"""One model in PyTorch and in JAX: profiles of both compare by class of operator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import leadline

TWIN = Path(__file__).resolve().parents[2] / "bench" / "twin.py"
STEPS = 12


def measured(folder: Path, framework: str) -> Path:
    file = folder / f"{framework}.leadline"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    command = [sys.executable, "-m", "leadline.cli.main", "run", "-q", "-o", str(file), str(TWIN), framework, "mlp"]
    subprocess.run([*command, "--steps", str(STEPS)], env=environment, check=True, timeout=120)
    return file


def test_the_same_network_spends_its_time_on_matrix_products_in_both(tmp_path: Path) -> None:
    torch, jax = measured(tmp_path, "torch"), measured(tmp_path, "jax")
    found = leadline.diff(torch, jax)
    classes = {name: (a, b) for name, a, b in found.groups["operator class"]}
    for side in (0, 1):
        assert max(classes, key=lambda name: classes[name][side]) == "matrix product"
    # three layers: three products forward, three for weights and two for inputs backward
    for file in (torch, jax):
        tree = leadline.open(file).tree
        products = [
            node
            for node in tree.find(kind="operator")
            if node.name in ("aten::addmm", "aten::mm") or node.name.startswith("dot_general")
        ]
        calls = sum(node.exclusive("call_time").count for node in products)
        assert calls == 8 * STEPS, [node.name for node in products]
