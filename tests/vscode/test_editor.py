"""The extension in a real VS Code in the browser: a profile that was measured elsewhere is opened, a frame is clicked, the editor
shows its line; findings stand among the problems."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tests.vscode.package import ROOT, built

pytestmark = pytest.mark.timeout(900)  # a whole VS Code starts, on a machine where others compile

JS = ROOT / "tests" / "js"
SERVER = Path(os.environ.get("LEADLINE_CODE_SERVER", ROOT / ".cache" / "code-server"))
ENTRY = SERVER / "node_modules" / "code-server" / "out" / "node" / "entry.js"

TRAIN = """\
import torch
from model import Net


def train(steps):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        loss = net(torch.randn(32, 64)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    train(20)
"""
MODEL = """\
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return x
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A workspace that holds a profile, and its sources below another folder than they ran in."""
    pytest.importorskip("torch", reason="measuring a program needs torch")
    there = tmp_path_factory.mktemp("cluster")
    here = tmp_path_factory.mktemp("laptop") / "work"
    for name, text in (("train.py", TRAIN), ("model.py", MODEL)):
        (there / name).write_text(text, encoding="utf-8")
        (here / "src" / "net").mkdir(parents=True, exist_ok=True)
        (here / "src" / "net" / name).write_text(text, encoding="utf-8")
    run = [sys.executable, "-m", "leadline", "run", "-q", "-o", "run.leadline", "train.py"]
    subprocess.run(run, cwd=there, check=True, timeout=300)
    subprocess.run(
        [sys.executable, "-m", "leadline", "analyze", "--save", "-o", "found.txt", "run.leadline"],
        cwd=there,
        check=True,
    )
    shutil.move(there / "run.leadline", here / "run.leadline")
    shutil.rmtree(there)
    return here


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Address of a VS Code with the extension and nothing else."""
    if shutil.which("chromium") is None or not (JS / "node_modules").exists():
        pytest.skip("Opening VS Code needs the program chromium and `npm ci` in tests/js.")
    if not ENTRY.exists():
        pytest.skip("A real VS Code is not set up; `make test-vscode` does it.")
    home = tmp_path_factory.mktemp("code")
    settings = {
        "workbench.startupEditor": "none",
        "telemetry.telemetryLevel": "off",
        "extensions.autoCheckUpdates": False,
        "leadline.python": sys.executable,
    }
    (home / "user" / "User").mkdir(parents=True)
    (home / "user" / "User" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    base = ["node", str(ENTRY), "--user-data-dir", str(home / "user"), "--extensions-dir", str(home / "extensions")]
    subprocess.run([*base, "--install-extension", str(built())], check=True, timeout=300, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = ["--auth", "none", "--bind-addr", f"127.0.0.1:{port}", "--disable-telemetry", "--disable-update-check"]
    with (home / "log").open("w") as log:
        running = subprocess.Popen([*base, *flags], stdout=log, stderr=log, start_new_session=True)
    address = f"http://127.0.0.1:{port}/"
    try:
        _wait_for(address, running)
        yield address
    finally:
        running.terminate()
        running.wait(timeout=60)


def _wait_for(address: str, running: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert running.poll() is None, "code-server ended"
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise AssertionError("code-server did not answer")


@pytest.fixture(scope="module")
def seen(server, workspace, tmp_path_factory):
    """What vscode.mjs saw in a workspace that is not trusted."""
    picture = tmp_path_factory.mktemp("pictures") / "vscode.png"
    done = subprocess.run(
        ["node", "vscode.mjs", f"{server}?folder={workspace}", "run.leadline", "Net.forward", "no-trust", str(picture)],
        cwd=JS, env={**os.environ, "CHROMIUM": shutil.which("chromium") or ""},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert "error" not in seen, f"{seen}, {picture}"
    return seen


def test_the_profile_opens_without_python_and_without_trust(seen):
    assert seen["overview"] == "train.py"


def test_a_click_on_a_frame_shows_its_line_though_the_path_differs(seen):
    assert seen["clicked"].startswith("Net.forward · model.py:11")
    assert "model.py" in seen["tabs"]
    assert seen["line"] == "x = layer(x).relu()"


def test_lines_and_functions_say_what_they_cost(seen):
    assert any("%" in text for text in seen["costs"])
    assert any("time" in text and "%" in text for text in seen["lenses"])


def test_findings_stand_among_the_problems_and_lead_back(seen):
    assert any("net.layers" in text and "hotspot" in text for text in seen["problems"])
    assert seen["revealed"]
