"""Whatever fails inside of Leadline, the program runs as it does unmeasured: each function that hooks and public
functions call of the native module raises, and the program prints what it prints without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

INJECTED = """
import sys
from leadline.capture import native, session
import leadline

class Failing:
    on = False
    # What the interpreter calls itself, and what undoes that; the end.
    kept = ("count_loss", "before_fork", "after_fork_in_parent", "after_fork", "stop", "provider_stop")

    def __init__(self, real):
        self.real = real

    def __getattr__(self, name):
        what = getattr(self.real, name)
        if not callable(what) or name in self.kept:
            return what

        def call(*arguments, **named):
            if Failing.on:
                raise RuntimeError("injected")
            return what(*arguments, **named)

        return call

if sys.argv[1] != "bare":
    failing = Failing(native.load_native())
    session.load_native = lambda: failing
    leadline.start("x.leadline", quiet=True, shapes=True, trace="steps=2", cpu_sample=97, wait=97)
    Failing.on = sys.argv[1] == "injected"
"""
PLAIN = """
import asyncio, gc, os, subprocess, threading

with leadline.region("block", {"detail": 1}):
    pass

@leadline.region("function")
def function(): return 1

@leadline.region("generator")
def generator(): yield from (1, 2)

@leadline.region("coroutine")
async def coroutine(): await asyncio.sleep(0); return 3

@leadline.region("asynchronous")
async def asynchronous(): yield 4

async def both(): return await coroutine(), [item async for item in asynchronous()]

print(function(), list(generator()), asyncio.run(both()))
leadline.step()
leadline.step(7)
gc.collect()
thread = threading.Thread(target=print, args=("thread",))
thread.start()
thread.join()
sys.stdout.flush()
if not (child := os.fork()):
    os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True).stdout)
if sys.argv[1] != "bare":
    leadline.pause()
    leadline.resume()
    leadline.current().labels(a="b")
leadline.place()
leadline.book([leadline.PathFrame("region", "x")], {"time": 1})
timer = leadline.CUDATimer("timer")
timer.start()
timer.stop()
try:
    raise KeyError("its own")
except KeyError as error:
    print(error)
"""
TORCH = """
import gc, os, torch

model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for batch in torch.utils.data.DataLoader(torch.ones(4, 4), batch_size=2, num_workers=1):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
    leadline.step()
optimizer.step(lambda: 1.0)
torch.save(model.state_dict(), "weights.pt")
print(torch.load("weights.pt").keys())
print(torch.utils.checkpoint.checkpoint(model, torch.ones(1, 4, requires_grad=True), use_reentrant=False).shape)
gc.collect()
print(torch.ones(2).sum())
"""
END = """
if sys.argv[1] != "bare":
    leadline.stop()
print("end")
"""


def ran(folder: Path, how: str) -> tuple[int, str, list[str]]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEADLINE")}
    command = [sys.executable, "program.py", how]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return (
        done.returncode,
        done.stdout,
        [line for line in done.stderr.splitlines() if not line.startswith("leadline: ")],
    )


@pytest.mark.parametrize("program", [PLAIN, TORCH], ids=["plain", "torch"])
def test_nothing_raises_into_the_program(program: str, tmp_path: Path) -> None:
    if program == TORCH:
        pytest.importorskip("torch")
    (tmp_path / "program.py").write_text(INJECTED + program + END)
    bare = ran(tmp_path, "bare")
    assert bare[0] == 0, bare
    assert ran(tmp_path, "injected") == bare
