"""transformers' continuous batching under `leadline run`: what its own answers give, and what an attach finds."""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import multiprocessing.connection
import os
import subprocess
import sys
from pathlib import Path

import pytest

from leadline.attach.family import sentence, started_by
from leadline.engines import engines_of
from leadline.profiles import open_profile

_PROGRAM = """
import json
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM
from transformers.generation.configuration_utils import ContinuousBatchingConfig
if __name__ == "__main__":
    model = LlamaForCausalLM(LlamaConfig(hidden_size=64, intermediate_size=128, num_attention_heads=4,
        num_key_value_heads=4, num_hidden_layers=2, vocab_size=512, attn_implementation="sdpa")).eval()
    prompts = [[3 + (i * 7 + j) % 400 for j in range(8 + 20 * (i % 5))] for i in range(24)]
    made = model.generate_batch(
        inputs=prompts,
        generation_config=GenerationConfig(max_new_tokens=12, do_sample=False, eos_token_id=-1, pad_token_id=0),
        continuous_batching_config=ContinuousBatchingConfig(num_blocks=64, max_batch_tokens=128),
    )
    print(json.dumps([len(made), sum(len(one.generated_tokens) for one in made.values()), sum(map(len, prompts))]))
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
def test_requests_and_tokens_are_those_that_it_gave_out(tmp_path: Path) -> None:
    (tmp_path / "serve.py").write_text(_PROGRAM)
    command = [sys.executable, "-m", "leadline", "run", "-o", "x.leadline", "--", sys.executable, "serve.py"]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, check=True, timeout=280)
    requests, tokens, prompts = json.loads(done.stdout.splitlines()[-1])
    profile = open_profile(tmp_path / "x.leadline")
    (engine,) = engines_of(profile.meta)
    assert engine.moved == ""
    assert (engine.number, engine.open, engine.earlier) == (requests, 0, 0)
    assert (engine.output_tokens, engine.prompt_tokens) == (tokens, prompts)
    assert engine.ended == {"length": requests}
    assert engine.of("cached_tokens").total < prompts
    assert engine.steps_ns + engine.gap.total + engine.no_work_ns == engine.serving_ns
    assert abs(engine.of("share").total / engine.steps_ns - 1) < 0.05
    phases = {node.name for node in profile.tree.find(kind="phase")}
    assert phases >= {"scheduling", "decode"}
    assert phases & {"prefill", "mixed"}


def _sleep(ready: multiprocessing.connection.Connection) -> None:
    ready.send(os.getpid())
    ready.recv()


def test_an_attach_names_the_processes_that_it_does_not_reach() -> None:
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    child = multiprocessing.get_context("spawn").Process(target=_sleep, args=(theirs,))
    child.start()
    try:
        pid = ours.recv()
        assert [one for one, _ in started_by(os.getpid())] == [pid]
        assert f"a process that it started is not measured: {pid} (" in sentence(os.getpid())
        assert sentence(pid) == ""
    finally:
        ours.send("end")
        child.join()
