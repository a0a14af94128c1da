"""Generation by a model of transformers with a static cache, its step a CUDA graph: without and with Leadline.

    python -m gpu_generate graph|compiled      the last line printed is the verdict as JSON

Tokens must be equal. `compiled` is `model.generate` with a static cache, whose step transformers compiles with graphs.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from gpu_run import rehearsing
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

import leadline

PROMPT, TOKENS = 16, 8 if rehearsing() else 96
BELOW_GRAPH = "captured at"


def model() -> Any:
    """A small Llama with drawn weights."""
    torch.manual_seed(0)
    size = 64 if rehearsing() else 1024
    config = LlamaConfig(
        vocab_size=1000, hidden_size=size, intermediate_size=3 * size, num_hidden_layers=2 if rehearsing() else 8,
        num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=512,
    )  # fmt: skip
    made: Any = LlamaForCausalLM(config)
    made.eval()
    return made if rehearsing() else made.cuda().bfloat16()


class Stepper:
    """One token after the other over a static cache; on a GPU every token is a replay of one graph."""

    def __init__(self, llama: Any) -> None:
        self.llama, device = llama, llama.device
        self.cache: Any = StaticCache(config=llama.config, max_cache_len=PROMPT + TOKENS + 8)
        self.token = torch.zeros(1, 1, dtype=torch.long, device=device)
        self.place = torch.zeros(1, dtype=torch.long, device=device)
        self.graph: torch.cuda.CUDAGraph | None = None
        if device.type == "cuda":
            self._capture()

    def advance(self) -> None:
        said = self.llama(
            self.token,
            past_key_values=self.cache,
            position_ids=self.place[None],
            cache_position=self.place,
            use_cache=True,
        )
        self.token.copy_(said.logits[:, -1:].argmax(-1))
        self.place += 1

    def _capture(self) -> None:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.advance()
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.advance()

    def generate(self) -> list[int]:
        """Tokens, from the same beginning each time."""
        self.cache.reset()
        self.token.fill_(7)
        self.place.zero_()
        found = []
        for _ in range(PROMPT + TOKENS):
            self.graph.replay() if self.graph is not None else self.advance()
            found.append(int(self.token))
        return found


def compiled(llama: Any) -> Callable[[], list[int]]:
    prompt = torch.arange(PROMPT, device=llama.device)[None]

    def generate() -> list[int]:
        out = llama.generate(
            prompt,
            max_new_tokens=TOKENS,
            do_sample=False,
            cache_implementation="static",
            pad_token_id=0,
            eos_token_id=None,
        )
        tokens: list[int] = out[0].tolist()
        return tokens

    return generate


def timed(generate: Callable[[], list[int]]) -> tuple[list[int], float]:
    begin = time.perf_counter()
    tokens = generate()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return tokens, time.perf_counter() - begin


def main() -> int:
    kind = sys.argv[1]
    output = Path(os.environ.get("ROUND_KEPT", "."), f"generate-{kind}.leadline")
    with torch.inference_mode():
        llama = model()
        generate = Stepper(llama).generate if kind == "graph" else compiled(llama)
        for _ in range(2):
            timed(generate)
        plain, plain_s = min((timed(generate) for _ in range(3)), key=lambda found: found[1])
        with leadline.profile(str(output), quiet=True):
            ours, ours_s = min((timed(generate) for _ in range(3)), key=lambda found: found[1])
        after, after_s = timed(generate)
    profile = leadline.open(str(output))
    kernels = sum(node.exclusive("gpu_time").count for node in profile.tree.find(kind="kernel"))
    in_graph = sum(node.exclusive("gpu_time").count for node in profile.tree.find(kind="kernel")
                   if any("raph" in step.name or BELOW_GRAPH in step.name for step in node.path()))  # fmt: skip
    facts: dict[str, Any] = {
        "ok": plain == ours == after, "tokens": len(plain), "tokens equal": plain == ours == after,
        "ms a token": {"unprofiled": plain_s / len(plain) * 1e3, "Leadline": ours_s / len(ours) * 1e3,
                       "afterwards": after_s / len(after) * 1e3},
        "kernels": kernels, "in graphs": in_graph,
        "losses": {loss.kind.name: loss.count for loss in profile.losses if loss.count},
    }  # fmt: skip
    print(json.dumps(facts))
    return 0 if facts["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
