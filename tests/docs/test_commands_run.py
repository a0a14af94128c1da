"""Commands of README and docs run as a shell runs them, in a folder that has what they name."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.commands import ROOT, Block, blocks, commands, shell_lines

NEEDS = {
    r"^(pip|make|cd|code|CHROMIUM=\S+|trace-cmd|perf|read|cc) ": "another program",
    r"\b(vllm|torchrun|logdir|run_metadata\.pb|timeline\.json|run\.log|perf\.txt|trace\.dat|lttng-traces|both)\b": "files "
    "of other programs",
    r"--backend sanitizer|tool uvm apply|--endpoint|--search|kernels\.so|server\.leadline": "a device, a client, a server",
    r"attach --stop": "another terminal, in which the process is still measured",
    r"clock-sync|clocks\.json|--git|--job|job\.perfetto": "two machines, a job that runs, or a repository",
    r"--counter (cycles|r01c2)|--source\b": "a processor or a device with counters",
    r"--with \w": "a run with another batch size",
    r"--tui|view --live|view --tui": "a terminal, or a running program",
    r"--rule \w+$": "the same for each rule",
    r"\bFILE\b|\bPID\b": "a form, not a command",
}
"""Lines that are parsed only (test_commands.py), with what they need."""
SLOW = r"leadline (try|prove|attach|ledger)\b|why 4711|for i in|new\*"
"""Lines that take minutes, or measure for half a minute."""
WITH_TORCH = {"docs/how-to/tools.md", "docs/timelines.md"}
"""Pages on which a program must call operators."""
FIRST_PAGES = {"README.md", "docs/getting-started.md"}
"""What a new user types, which every run of the tests types too; that of other pages `make nightly` types."""
ANSWERS = {"gate": (0, 1, 3), "doctor": (0, 1)}
"""Exit codes that answer a question; 0 for all others."""
LONG_S = 300


def runs(line: str) -> bool:
    return any("leadline" in words for words in commands(line)) and not any(re.search(one, line) for one in NEEDS)


def chosen(slow: bool) -> list[Block]:
    """Blocks for a shell, cut to the lines that run."""
    found = []
    for block in blocks():
        if block.language == "sh":
            lines = [line for line in shell_lines(block) if runs(line) and bool(re.search(SLOW, line)) == slow]
            found += [Block(block.page, block.number, block.language, tuple(lines))] if lines else []
    return found


@pytest.fixture
def folder(stand_ins: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A copy for one block; files that the page itself shows are in it."""
    made = Path(shutil.copytree(stand_ins, tmp_path / "work"))
    page = request.node.callspec.params["block"].page
    if page in WITH_TORCH:
        shutil.copy(made / "torch_train.py", made / "train.py")
    text = (ROOT / page).read_text(encoding="utf-8")
    for language, name in (("python", "mine.py"), ("toml", "my_npu.toml")):
        if name in text and (shown := re.search(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)):
            (made / name).write_text(shown[1])
    return made


@pytest.fixture
def process(folder: Path, request: pytest.FixtureRequest) -> Iterator[int]:
    """A program that goes on, measured where `leadline top` looks at it; 0 where the block needs none."""
    lines = "\n".join(request.node.callspec.params["block"].lines)
    if not re.search(r"\b4711\b|leadline top", lines):
        yield 0
        return
    (folder / "long.py").write_text("import leadline\nwhile True:\n    sum(range(99999))\n    leadline.step()\n")
    measured = "leadline top" in lines
    begins = (
        ["-m", "leadline.cli.main", "run", "-q", "--flush-interval", "0.2s", "-o", "run.leadline"] if measured else []
    )
    (folder / "run.leadline").unlink()
    with subprocess.Popen(
        [sys.executable, *begins, "long.py"], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as started:  # fmt: skip
        ends = time.monotonic() + LONG_S
        while measured and not list(folder.glob("run.leadline.part/*/*.segment")) and time.monotonic() < ends:
            with contextlib.suppress(subprocess.TimeoutExpired):
                started.wait(0.05)
        try:
            yield started.pid
        finally:
            started.terminate()  # which a supervisor hands on


def served(typed: str, folder: Path, environment: dict[str, str]) -> None:
    """`leadline view` prints its address, serves, and ends at Ctrl-C."""
    with subprocess.Popen(
        ["bash", "-c", f"exec {typed.partition(' #')[0]}"], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as started:  # fmt: skip
        assert started.stdout is not None and started.stderr is not None
        address = started.stdout.readline()
        if not address.startswith("http://127.0.0.1:"):
            started.kill()
            raise AssertionError(f"{typed}: {address}{started.stderr.read()}")
        started.send_signal(signal.SIGINT)
        assert started.wait(LONG_S) in (0, 130), started.stderr.read()


def run_block(block: Block, folder: Path, pid: int) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "BROWSER": "true",
        "COLUMNS": "100",
    }
    for line in block.lines:
        typed = re.sub(r"\b4711\b", str(pid), line)
        if typed.startswith("leadline view"):
            served(typed, folder, environment)
            continue
        done = subprocess.run(
            ["bash", "-c", typed], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=LONG_S, check=False,
        )  # fmt: skip
        words = next(words for words in commands(line) if "leadline" in words)
        allowed = ANSWERS.get(words[words.index("leadline") + 1], (0,))
        assert done.returncode in allowed, f"{line}\n{done.stdout[-500:]}\n{done.stderr}"
        assert "Traceback" not in done.stderr and "has a bug" not in done.stderr, f"{line}\n{done.stderr}"


@pytest.mark.parametrize("block", [one for one in chosen(slow=False) if one.page in FIRST_PAGES], ids=str)
def test_commands_run(block: Block, folder: Path, process: int) -> None:
    run_block(block, folder, process)


@pytest.mark.slow
@pytest.mark.parametrize("block", [one for one in chosen(slow=False) if one.page not in FIRST_PAGES], ids=str)
def test_commands_of_other_pages_run(block: Block, folder: Path, process: int) -> None:
    run_block(block, folder, process)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("block", chosen(slow=True), ids=str)
def test_long_commands_run(block: Block, folder: Path, process: int) -> None:
    run_block(block, folder, process)


def test_most_commands_run() -> None:
    """What is only parsed is the exception."""
    lines = [line for block in blocks() if block.language == "sh" for line in shell_lines(block) if "leadline" in line]
    named = [line for line in lines if not re.search(r"--rule \w+$", line)]
    assert sum(runs(line) for line in named) > 0.7 * len(named)
