"""Runs the stages of a round one after the other; what each found is in OUT the moment that it ended.

    python -m gpu_round OUT WORK SECONDS [STAGE or SET ...]

OUT gets results.jsonl (a line for each step), log.txt (the last lines of each), stacks.txt (of what overran), tables.md
and kept.tar.gz (profiles and results that stages leave in ROUND_KEPT). A step has its own process group and its own
limit; one that overruns is asked for its stacks first and ended then. Nothing that a step does can cost another.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_round_stages import LIMITS, SETS, SLOWER, STAGES, Step
from gpu_run import last_object
from gpu_stacks import FOLDER_VARIABLE, SIGNAL, processes, stacks

Result = dict[str, Any]

LARGEST_FILE = 15 << 20
_LEAST_S = 4.0
_STACKS_S = 30.0
"""Seconds that must be left for a debugger to be asked as well."""
_TAIL_LINES = 60
_TAIL_BYTES = 12_000
_ENDING_S = 2.0


@dataclass
class Round:
    """Where results go, and how long there is."""

    out: Path
    work: Path
    deadline: float

    def left(self) -> float:
        return self.deadline - time.monotonic()

    def stage(self, name: str) -> None:
        """All steps of one; a step that has a condition is looked at when those before it have ended."""
        ended: dict[str, str] = {}
        until = time.monotonic() + LIMITS.get(name, float("inf")) * SLOWER
        for step in STAGES[name]:
            if step.after_failure_of and ended.get(step.after_failure_of) in ("ok", "skipped"):
                continue
            allowed = min(step.limit_s * SLOWER, self.left() - _ENDING_S, until - time.monotonic())
            if allowed < min(_LEAST_S, step.limit_s):
                result: Result = {"status": "skipped", "why": "no time left"}
            else:
                try:
                    result = self.step(name, step, allowed, first="overran" not in ended.values())
                except Exception as error:  # whatever a step's remains do to us must not cost those that follow
                    result = {"status": "crashed", "why": f"{type(error).__name__}: {error}"}
            ended[step.name] = result["status"]
            self.keep({"stage": name, "step": step.name, "limit_s": step.limit_s, **result})
        self.pack()

    def step(self, stage: str, step: Step, allowed: float, first: bool) -> Result:
        """Run it: status ok, failed (status 1), crashed (another), overran."""
        log_path = self.work / f"{stage}-{step.name.replace(' ', '_').replace('/', '_')}.log"
        stack_folder = self.work / "stacks"
        stack_folder.mkdir(exist_ok=True)
        environment = {**os.environ, **step.environment, FOLDER_VARIABLE: str(stack_folder),
                       "ROUND_STEP": log_path.stem}  # fmt: skip
        os.environ[FOLDER_VARIABLE] = str(stack_folder)
        calls = self.work / "kept" / f"{log_path.stem}.calls.txt"
        if step.traced:
            environment["LEADLINE_CUPTI_TRACE"] = str(calls)
        begin = time.monotonic()
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                [word.replace("{seconds}", f"{max(allowed - step.ending_s, 1):.0f}") for word in step.command],
                stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=self.work, env=environment,
                start_new_session=True,
            )  # fmt: skip
            try:
                process.wait(timeout=allowed)
                status = {0: "ok", 1: "failed"}.get(process.returncode, "crashed")
            except subprocess.TimeoutExpired:
                status = "overran"
                self.append("stacks.txt", f"##### {stage}: {step.name} after {allowed:.0f} s\n")
                if calls.exists():
                    self.append("stacks.txt", f"calls into CUPTI:\n{tail(calls.read_text(errors='replace'))}\n")
                thorough = first and self.left() > _STACKS_S
                self.append("stacks.txt", stacks(process.pid, thorough, 15 if thorough else 5))
            finally:
                end_group(process)
        seconds = round(time.monotonic() - begin, 1)
        said = log_path.read_text(errors="replace")
        self.append("log.txt", f"##### {stage}: {step.name}: {status} after {seconds} s\n{tail(said)}\n")
        result: Result = {"status": status, "seconds": seconds, "facts": facts_of(said)}
        if status == "crashed":
            result["why"] = died(process.returncode)
        return result

    def keep(self, result: Result) -> None:
        """A line of results.jsonl, on the disk; one for who watches."""
        self.append("results.jsonl", json.dumps(result, default=str) + "\n")
        facts = json.dumps(result.get("facts", {}), default=str)
        print(f"{result['stage']}: {result['step']}: {result['status']} {result.get('why', '')} "
              f"{result.get('seconds', 0)} s, {self.left():.0f} s left; {facts[:240]}", flush=True)  # fmt: skip

    def append(self, name: str, text: str) -> None:
        with (self.out / name).open("a", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())

    def pack(self) -> None:
        """kept.tar.gz anew, smallest files first; what does not fit is named."""
        kept = sorted((path for path in (self.work / "kept").rglob("*") if path.is_file()), key=size)
        room, left_out, partial = LARGEST_FILE, [], self.work / "kept.partial"
        with tarfile.open(partial, "w:gz", compresslevel=1) as archive:
            for path in kept:
                if size(path) < room:
                    archive.add(path, arcname=str(path.relative_to(self.work / "kept")))
                    room -= size(path)
                else:
                    left_out.append(path.name)
        (self.out / "kept.tar.gz").write_bytes(partial.read_bytes())
        if left_out:
            self.append("log.txt", f"kept.tar.gz: left out for size: {', '.join(left_out)}\n")


def size(path: Path) -> int:
    return path.stat().st_size


def tail(said: str) -> str:
    """The last lines; results that are in results.jsonl are not said again."""
    lines = [line for line in said.splitlines() if not line.startswith(('{"table"', "USDT:"))]
    return "\n".join(lines[-_TAIL_LINES:])[-_TAIL_BYTES:]


def facts_of(said: str) -> dict[str, Any]:
    """The last line that is a JSON object: a step that was ended has often said what it knew. Pairs are all kept."""
    found = [last_object(line) for line in said.splitlines() if line.startswith("{")]
    pairs = {one["pair"]: one for one in found if "pair" in one}  # what was measured replaces what was predicted
    return {"pairs": list(pairs.values())} if pairs else found[-1] if found else {}


def died(code: int) -> str:
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"


def end_group(process: subprocess.Popen[bytes]) -> None:
    """All that the step has started and not left: those that hang in a driver may not answer the first signal."""
    for number, patience_s in ((signal.SIGTERM, 1.0), (signal.SIGKILL, 3.0)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        deadline = time.monotonic() + patience_s
        while processes(process.pid) and time.monotonic() < deadline:
            process.poll()
            time.sleep(0.02)
    process.poll()


def chosen(words: list[str]) -> list[str]:
    """Stages by name, or sets of them; raises SystemExit with one sentence."""
    found: list[str] = []
    for word in words or ["first"]:
        if word not in SETS and word not in STAGES:
            raise SystemExit(f"There is no stage {word}; stages: {', '.join(STAGES)}; sets: {', '.join(SETS)}.")
        found += SETS.get(word, (word,))
    return found


def machine(environment: Mapping[str, str] = os.environ) -> Result:
    """Card, driver and versions, without importing a framework."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.max.sm", "--format=csv,noheader"]
    try:
        card = subprocess.run(query, capture_output=True, text=True, check=False, timeout=15).stdout.strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        card = f"({error})"
    if environment.get("LEADLINE_BENCH_FAKES"):
        card = "fake GPU (rehearsal)"
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for name in ("torch", "triton", "jax", "transformers", "nvidia-cuda-cupti"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"gpu": card, "python": sys.version.split()[0], "kernel": os.uname().release, "cpus": os.cpu_count(),
            **versions}  # fmt: skip


def main() -> int:
    out, work, seconds, *words = sys.argv[1:]
    this = Round(Path(out), Path(work), time.monotonic() + float(seconds))
    (this.work / "kept").mkdir(parents=True, exist_ok=True)
    os.environ["ROUND_KEPT"] = str(this.work / "kept")
    names = chosen(words)
    signal.signal(SIGNAL, signal.SIG_IGN)
    this.keep({"stage": "machine", "step": "machine", "status": "ok", "limit_s": 15, "facts": machine()})
    for name in names:
        this.stage(name)
        write_tables(this.out)
    print((this.out / "tables.md").read_text(encoding="utf-8") if (this.out / "tables.md").exists() else "")
    return 0


def write_tables(out: Path) -> None:
    """A page that cannot be made must not end the round."""
    try:
        from gpu_round_pages import pages

        text = "\n".join(pages(out).values())
    except Exception as error:
        text = f"The tables could not be made: {type(error).__name__}: {error}\n"
    (out / "tables.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
