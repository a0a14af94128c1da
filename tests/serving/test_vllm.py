"""A real vLLM on CPUs under `leadline run`: the facts that its own answers give, and planted problems. Nightly."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from leadline.analysis.analyze import analyze
from leadline.engines import Engine, engines_of, together
from leadline.profiles import Profile, open_profile

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed"),
    pytest.mark.timeout(600),
]

_CONFIG = {
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
}
_PROGRAM = """
import json, sys, time
from vllm import LLM, SamplingParams
if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    engine = dict(load_format="dummy", dtype="float32", enforce_eager=True, max_model_len=1024, max_num_seqs=8,
                  gpu_memory_utilization=0.2, skip_tokenizer_init=True) | asked["engine"]
    llm = LLM("model", **engine)
    prompts = [{"prompt_token_ids": [3 + (i * 7 + j) % 900 for j in range(asked["prompt"] + i % 5)]}
               for i in range(asked["requests"])]
    sampling = SamplingParams(max_tokens=asked["tokens"], ignore_eos=True, detokenize=False, **asked["sampling"])
    if asked["pause"]:  # a loop of one's own around the engine, which does something else between its steps
        step = llm.llm_engine.step
        llm.llm_engine.step = lambda: (time.sleep(asked["pause"]), step())[1]
    made = llm.generate(prompts, sampling)
    print(json.dumps({"outputs": len(made), "tokens": sum(len(one.outputs[0].token_ids) for one in made),
                      "prompts": sum(len(one.prompt_token_ids) for one in made)}))
"""


def served(folder: Path, **asked: object) -> tuple[Profile, Engine, dict[str, int]]:
    defaults = {"engine": {}, "sampling": {}, "prompt": 16, "tokens": 16, "requests": 24, "pause": 0}
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text(json.dumps(_CONFIG))
    (folder / "serve.py").write_text(_PROGRAM)
    environment = os.environ | {
        **({"VLLM_ENABLE_V1_MULTIPROCESSING": "0"} if asked.get("pause") else {}),
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    command = [sys.executable, "-m", "leadline", "run", "-o", "x.leadline", "--", sys.executable, "serve.py"]
    done = subprocess.run(
        [*command, json.dumps(defaults | asked)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
        timeout=500,
    )
    profile = open_profile(folder / "x.leadline")
    engine = together(engines_of(profile.meta))
    assert engine is not None
    return profile, engine, json.loads(done.stdout.splitlines()[-1])


def rules(profile: Profile) -> set[str]:
    return {one.rule for one in analyze(profile)}


def test_requests_and_tokens_are_those_that_the_engine_gave_out(tmp_path: Path) -> None:
    profile, engine, said = served(tmp_path)
    assert (engine.number, engine.open) == (said["outputs"], 0)
    assert (engine.output_tokens, engine.prompt_tokens) == (said["tokens"], said["prompts"])
    assert engine.moved == ""
    assert profile.meta["complete"]  # vLLM ends its workers with SIGKILL
    parts = [engine.of(name).total for name in ("queue", "prefill", "decode")]
    assert sum(parts) == engine.of("e2e").total
    assert engine.steps_ns + engine.gap.total + engine.no_work_ns == engine.serving_ns
    assert abs(engine.of("share").total / engine.steps_ns - 1) < 0.02
    assert not rules(profile) & {"cache_preemption", "logprobs_for_all"}


def test_log_probabilities_of_everything(tmp_path: Path) -> None:
    profile, _, _ = served(tmp_path, sampling={"logprobs": 5, "prompt_logprobs": 5})
    assert "logprobs_for_all" in rules(profile)


def test_a_small_cache_preempts(tmp_path: Path) -> None:
    small = {"num_gpu_blocks_override": 12, "max_model_len": 512, "block_size": 128}
    profile, engine, _ = served(tmp_path, engine=small, prompt=100, tokens=150, requests=12)
    assert engine.preemptions > 0
    assert "cache_preemption" in rules(profile)


def test_long_prompts_stall_decoding(tmp_path: Path) -> None:
    whole = {"enable_chunked_prefill": False, "max_num_batched_tokens": 8192, "enable_prefix_caching": False}
    profile, _, _ = served(tmp_path, engine=whole, prompt=900, tokens=20, requests=40)
    assert "prefill_stalls" in rules(profile)


def test_something_else_between_steps_is_a_scheduler_gap(tmp_path: Path) -> None:
    profile, engine, _ = served(tmp_path, pause=0.2, tokens=32, requests=16)
    assert engine.gap.quantile(0.5) > 0.19e9
    assert "scheduler_gap" in rules(profile)
