"""The extension in a real VS Code in the browser: a profile that was measured elsewhere is opened, a frame is clicked, the editor
shows its line; findings stand among the problems. In a folder that is not trusted, and in a workspace that is no folder at all,
where the extension runs in the browser itself."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
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
    with serving(tmp_path_factory.mktemp("code"), [built()], {}) as address:
        yield address


@contextmanager
def serving(home: Path, extensions: list[Path], more: dict[str, object]) -> Iterator[str]:
    if shutil.which("chromium") is None or not (JS / "node_modules").exists():
        pytest.skip("Opening VS Code needs the program chromium and `npm ci` in tests/js.")
    if not ENTRY.exists():
        pytest.skip("A real VS Code is not set up; `make test-vscode` does it.")
    settings = {
        **more,
        "workbench.startupEditor": "none",
        "telemetry.telemetryLevel": "off",
        "extensions.autoCheckUpdates": False,
    }
    machine = {"leadline.python": sys.executable}  # a path is a setting of the machine that has it
    for place, content in (("User", settings), ("Machine", machine)):
        (home / "user" / place).mkdir(parents=True)
        (home / "user" / place / "settings.json").write_text(json.dumps(content), encoding="utf-8")
    base = ["node", str(ENTRY), "--user-data-dir", str(home / "user"), "--extensions-dir", str(home / "extensions")]
    for one in extensions:
        subprocess.run([*base, "--install-extension", str(one)], check=True, timeout=300, capture_output=True)
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


def drive(script: str, *arguments: str, picture: Path) -> dict:
    """What a script of tests/js saw; `picture`: where it leaves one."""
    done = subprocess.run(
        ["node", script, *arguments, str(picture)], cwd=JS, env={**os.environ, "CHROMIUM": shutil.which("chromium") or ""},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen: dict = json.loads(done.stdout)
    assert "error" not in seen, f"{seen}, {picture}"
    return seen


@pytest.fixture(scope="module")
def seen(server, workspace, tmp_path_factory):
    """What is seen of the profile in a workspace that is not trusted."""
    picture = tmp_path_factory.mktemp("pictures") / "vscode.png"
    return drive("vscode.mjs", f"{server}?folder={workspace}", "run.leadline", "Net.forward", picture=picture)


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


def test_in_an_untrusted_workspace_no_program_can_be_run(seen):
    assert seen["commands"] == [
        "Leadline: Choose the Metric Shown Beside Lines",
        "Leadline: Compare Two Profiles",
        "Leadline: Show or Hide the Cost of Lines",
    ]


@pytest.fixture(scope="module")
def virtual(workspace, tmp_path_factory):
    """What is seen of the same files in a workspace that is no folder, by the extension in the browser's own host."""
    folder = tmp_path_factory.mktemp("memfs")
    files = {f"/{path.relative_to(workspace.parent)}": path for path in workspace.rglob("*") if path.is_file()}
    held = {name: base64.b64encode(path.read_bytes()).decode() for name, path in files.items()}
    source = Path(__file__).parent / "memfs"
    with zipfile.ZipFile(folder / "memfs.vsix", "w") as package:
        package.write(source / "package.json", "extension/package.json")
        code = (source / "extension.js").read_text(encoding="utf-8")
        package.writestr("extension/extension.js", code.replace("FILES = {}", f"FILES = {json.dumps(held)}"))
    in_browser = {"remote.extensionKind": {"leadline.leadline": ["web"], "tests.memfs": ["web"]}}
    with serving(folder, [built(), folder / "memfs.vsix"], in_browser) as address:
        found = drive(
            "vscode.mjs", f"{address}?folder=memfs:/work", "run.leadline", "Net.forward", picture=folder / "seen.png"
        )
    return {**found, "on_server": ran_on_server(folder)}


def ran_on_server(home: Path) -> set[str]:
    """Extensions that the host on the server's side has started; those in the browser are not in its log."""
    logs = [path.read_text(encoding="utf-8") for path in home.glob("user/logs/*/exthost*/remoteexthost.log")]
    assert logs
    return {one for one in re.findall(r"_doActivateExtension ([\w.-]+),", "\n".join(logs)) if "vscode." not in one}


def test_a_virtual_workspace_shows_the_same_and_runs_nothing(virtual, seen):
    assert virtual["on_server"] == set()
    assert virtual["overview"] == seen["overview"]
    assert virtual["clicked"] == seen["clicked"]
    assert virtual["line"] == seen["line"]
    assert virtual["lenses"] == seen["lenses"]
    assert virtual["problems"] == seen["problems"]
    assert virtual["revealed"] == seen["revealed"]
    searching = "Leadline: Compare Two Profiles"  # looks for profiles, which such a workspace cannot
    assert virtual["commands"] == [one for one in seen["commands"] if one != searching]


PROGRAM = """\
import torch

for _ in range(5):
    x = torch.randn(64, 64)
    (x @ x).sum().item()
"""
TESTS = """\
import torch


class TestProgram:
    def test_it(self):
        x = torch.randn(64, 64)
        assert (x @ x).shape == (64, 64)
"""


def test_a_file_and_a_test_are_profiled_from_the_editor_and_compared(server, tmp_path):
    work = tmp_path / "trusted"
    work.mkdir()
    (work / "program.py").write_text(PROGRAM, encoding="utf-8")
    (work / "test_program.py").write_text(TESTS, encoding="utf-8")
    (work / "broken.leadline").write_bytes(b"PK\x03\x04 and then nothing")
    seen = drive("vscode_run.mjs", f"{server}?folder={work}", picture=tmp_path / "run.png")
    assert "This profile cannot be shown" in seen["broken"]
    assert "fault of the page" not in seen["broken"]
    assert seen["program"].endswith("program.py")
    assert seen["links"] == 1
    assert "test_program.py::TestProgram::test_it" in seen["test"]
    assert (work / "program.leadline").exists()
    assert (work / "TestProgram.test_it.leadline").exists()
    assert "program.leadline" in seen["titles"][-1]
    assert seen["comparison"]
