"""The timers' signal beside a program that has its own way with signals."""

from __future__ import annotations

import subprocess
import sys

import leadline


def test_a_program_that_puts_all_signal_handlers_back_is_not_ended_by_the_next_timer(tmp_path):
    """As Lightning does at the end of `fit`: it remembers what Python says of every signal."""
    program = tmp_path / "program.py"
    program.write_text(
        "import signal, time\n"
        "signals = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}\n"
        "kept = {one: signal.getsignal(one) for one in signals}\n"
        "for one, handler in kept.items():\n"
        "    if handler is not None:\n"
        "        signal.signal(one, handler)\n"
        "while time.process_time() < 1.0:\n"
        "    sum(range(1000))\n"
        "print('to the end')\n"
    )
    output = tmp_path / "p.leadline"
    command = [sys.executable, "-m", "leadline", "run", "-q", "--cpu-sample", "-o", str(output), str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "to the end\n"), done.stderr
    assert leadline.open(output).tree.root.inclusive("cpu_sample").count > 10
