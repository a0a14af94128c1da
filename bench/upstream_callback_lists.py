"""What a callback that does nothing adds to one autograd node: run it with torch as it is and with the change of
docs/upstream/torch-callback-lists.md.

    python bench/upstream_callback_lists.py [--nodes 200] [--rounds 60]

Needs a C++ compiler (torch.utils.cpp_extension). Observed and unobserved backward passes take turns in one process;
CPU time of this thread, medians.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <ATen/record_function.h>

int64_t observe() {
  return static_cast<int64_t>(at::addGlobalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> {
        return nullptr;
      }).scopes({at::RecordScope::FUNCTION})));
}

void stop(int64_t handle) { at::removeCallback(static_cast<at::CallbackHandle>(handle)); }
"""


def backward_ns(nodes: int) -> float:
    """CPU time of one backward pass through a chain of `nodes` operators."""
    first = value = torch.ones(1, requires_grad=True)
    for _ in range(nodes):
        value = value + 1
    begin_ns = time.thread_time_ns()
    torch.autograd.grad(value, first)
    return time.thread_time_ns() - begin_ns


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description="Measure what an observer adds to an autograd node.")
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=60)
    arguments = parser.parse_args()
    observer = load_inline("observer", SOURCE, functions=["observe", "stop"])
    plain, observed = [], []
    for _ in range(arguments.rounds):
        plain.append(backward_ns(arguments.nodes))
        handle = observer.observe()
        observed.append(backward_ns(arguments.nodes))
        observer.stop(handle)
    before, after = (statistics.median(one) / arguments.nodes for one in (plain, observed))
    print(f"torch {torch.__version__}: {before:.0f} ns a node, {after - before:+.0f} ns with an observer")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
