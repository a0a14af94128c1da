"""What-if predictions against the truth on a CPU: profiled before, predicted, changed, and measured after.

    python bench/whatif/cpu_pairs.py --list
    python bench/whatif/cpu_pairs.py --only "batch" --only "threads"     # rows of other pairs stay in the results
    python bench/whatif/cpu_pairs.py --keep /tmp/pairs                   # and the traces are kept
    python bench/whatif/cpu_pairs.py --predict-again /tmp/pairs          # from kept traces, measuring nothing

Each pair records a few steps of the unchanged program, with torch.profiler and with Leadline, predicts the change from
each trace alone, and measures both programs without a recorder, in processes of their own that take turns (turns.py).
The predicted time is the measured time before, times predicted over replayed. Takes half a minute a pair; three of the
unseen models are the transformers library's.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cpu_models import Program
from cpu_report import HELD_OUT, LIMIT, UNSEEN, Predicted, Row, read_rows, write_rows
from outcomes import Ratio, asked, gone
from turns import measure

from common import add_results_option, machine
from leadline.whatif.load import load
from leadline.whatif.scenarios.base import ScenarioError
from leadline.whatif.simulator import simulate

SUFFIXES = {"kineto": ".json", "leadline": ".leadline"}


@dataclass(frozen=True)
class Pair:
    """A change: what it is called, both programs, its prediction, and the cores it needs."""

    name: str
    before: Program
    after: Program
    ratio: Ratio
    cores: int = 1


def given(program: Program) -> Program:
    """With memory given back to the system after use, as glibc does by default."""
    return replace(program, keeps_memory=False)


def loading(workers: str) -> Ratio:
    return asked("data_loading", workers=workers, cores=str(len(os.sched_getaffinity(0))))


def pairs() -> list[Pair]:
    """All pairs; those that need more cores than there are are left out by `main`."""
    mlp = Program("mlp", 64, "adam")
    mlp_sgd = Program("mlp", 128)
    text = Program("transformer", 8)
    text_adam = Program("transformer", 4, "adamw")
    ads = Program("recommender", 256)
    ads_adam = Program("recommender", 256, "adam")
    image = Program("conv", 16, "momentum")
    gelu = Program("gelu", 128, dropout=True)
    wide = Program("wide", 256)
    feed = Program("mlp", 64, workers=0)
    images = Program("conv", 16, workers=0, decoding=700)
    slow = Program("mlp", 64, workers=1, decoding=2500)
    twice = asked("batch_size", factor="2")
    fused = asked("fused_optimizer")
    two_threads = asked("cpu_threads", threads="2")
    dropout = gone(r"^aten::(native_)?dropout$", r"(MulBackward0|NativeDropoutBackward0)$")
    batch_norm = gone(r"^aten::batch_norm$", r"NativeBatchNormBackward0$")
    return [
        Pair("MLP: fused Adam", mlp, replace(mlp, fused=True), fused),
        Pair("transformer: fused AdamW", text_adam, replace(text_adam, fused=True), fused),
        Pair("recommender: fused Adam", ads_adam, replace(ads_adam, fused=True), fused),
        Pair("convnet: fused SGD with momentum", image, replace(image, fused=True), fused),
        Pair("MLP: fused Adam, memory given back", given(mlp), given(replace(mlp, fused=True)), fused),
        Pair(
            "recommender: fused Adam, memory given back", given(ads_adam), given(replace(ads_adam, fused=True)), fused
        ),
        Pair("MLP: batch x2", mlp_sgd, replace(mlp_sgd, batch=256), twice),
        Pair("convnet: batch x2", image, replace(image, batch=32), twice),
        Pair("transformer: batch x2", text, replace(text, batch=16), twice),
        Pair("recommender: batch x2", ads, replace(ads, batch=512), twice),
        Pair("GELU MLP: dropout removed", gelu, replace(gelu, dropout=False), dropout),
        Pair(
            "transformer: dropout removed",
            replace(text, dropout=True),
            text,
            gone(r"^aten::(native_)?dropout$", r"NativeDropoutBackward0$"),
        ),
        Pair("convnet: batch norm removed", image, replace(image, batch_norm=False), batch_norm),
        Pair(
            "transformer: activation checkpointing",
            text,
            replace(text, checkpointed=True),
            asked("activation_checkpointing"),
        ),
        Pair("wide MLP: threads 1 to 2", wide, replace(wide, threads=2), two_threads, 2),
        Pair("convnet: threads 1 to 2", image, replace(image, threads=2), two_threads, 2),
        Pair("transformer: threads 1 to 2", text, replace(text, threads=2), two_threads, 2),
        Pair("MLP: loader workers 0 to 1", feed, replace(feed, workers=1), loading("1"), 2),
        Pair("convnet: loader workers 0 to 1", images, replace(images, workers=1), loading("1"), 2),
        Pair("MLP: loader workers 1 to 2", slow, replace(slow, workers=2), loading("2"), 2),
        *held_out(),
        *unseen(),
    ]


def held_out() -> list[Pair]:
    """Pairs of models that no factor was chosen with; the ranges were mended once with their measurements in hand."""
    twice, fused = asked("batch_size", factor="2"), asked("fused_optimizer")
    two_threads = asked("cpu_threads", threads="2")
    lstm, mixer, auto = (
        Program("lstm", 32, "adam"),
        Program("mixer", 16, "adamw"),
        Program("autoencoder", 32, "momentum"),
    )
    feed = Program("autoencoder", 32, "momentum", workers=0, decoding=300)
    return [
        Pair(f"{HELD_OUT}LSTM: fused Adam", lstm, replace(lstm, fused=True), fused),
        Pair(f"{HELD_OUT}LSTM: batch x2", lstm, replace(lstm, batch=64), twice),
        Pair(f"{HELD_OUT}mixer: fused AdamW", mixer, replace(mixer, fused=True), fused),
        Pair(f"{HELD_OUT}mixer: batch x2", mixer, replace(mixer, batch=32), twice),
        Pair(f"{HELD_OUT}mixer: threads 1 to 2", mixer, replace(mixer, threads=2), two_threads, 2),
        Pair(f"{HELD_OUT}autoencoder: fused SGD", auto, replace(auto, fused=True), fused),
        Pair(f"{HELD_OUT}autoencoder: batch x2", auto, replace(auto, batch=64), twice),
        Pair(f"{HELD_OUT}autoencoder: threads 1 to 2", auto, replace(auto, threads=2), two_threads, 2),
        Pair(f"{HELD_OUT}autoencoder: loader workers 0 to 1", feed, replace(feed, workers=1), loading("1"), 2),
    ]


def unseen() -> list[Pair]:
    """Pairs of families that nothing was chosen with: what the accuracy of the others is worth."""
    twice, fused = asked("batch_size", factor="2"), asked("fused_optimizer")
    two_threads = asked("cpu_threads", threads="2")
    batch_norm = gone(r"^aten::batch_norm$", r"NativeBatchNormBackward0$")
    t5 = Program("t5", 8, "adamw")
    vit, images = Program("vit", 8, "adam"), Program("vit", 8, workers=0, decoding=3000)
    mamba = Program("mamba", 8, "adamw", foreach=True)
    unet = Program("unet", 8, "momentum")
    tagger = Program("tagger", 16, "adam")
    messages = Program("messages", 64, "adam")
    inverted = Program("inverted", 16, "adagrad")
    decoded = Program("inverted", 16, workers=1, decoding=9000)
    experts = Program("experts", 256, "adam", foreach=True)
    found = [
        Pair("T5: batch x2", t5, replace(t5, batch=16), twice),
        Pair("T5: fused AdamW", t5, replace(t5, fused=True), fused),
        Pair("Mamba: foreach to fused AdamW", mamba, replace(mamba, fused=True, foreach=False), fused),
        Pair("Mamba: batch x2", mamba, replace(mamba, batch=16), twice),
        Pair("U-Net: batch x2", unet, replace(unet, batch=16), twice),
        Pair("U-Net: threads 1 to 2", unet, replace(unet, threads=2), two_threads, 2),
        Pair("GRU tagger: fused Adam", tagger, replace(tagger, fused=True), fused),
        Pair("GRU tagger: batch x2", tagger, replace(tagger, batch=32), twice),
        Pair("ViT: fused Adam", vit, replace(vit, fused=True), fused),
        Pair("ViT: loader workers 0 to 1", images, replace(images, workers=1), loading("1"), 2),
        Pair("graph network: batch x2", messages, replace(messages, batch=128), twice),
        Pair("inverted residuals: fused Adagrad", inverted, replace(inverted, fused=True), fused),
        Pair("inverted residuals: batch norm removed", inverted, replace(inverted, batch_norm=False), batch_norm),
        Pair("inverted residuals: loader workers 1 to 2", decoded, replace(decoded, workers=2), loading("2"), 2),
        Pair("experts: foreach to fused Adam", experts, replace(experts, fused=True, foreach=False), fused),
        Pair("experts: batch x2", experts, replace(experts, batch=512), twice),
        Pair("T5: threads 1 to 2", t5, replace(t5, threads=2), two_threads, 2),
        Pair("ViT: batch x2", vit, replace(vit, batch=16), twice),
        Pair("graph network: fused Adam", messages, replace(messages, fused=True), fused),
        Pair("U-Net: fused SGD", unet, replace(unet, fused=True), fused),
        Pair("graph network: threads 1 to 2", messages, replace(messages, threads=2), two_threads, 2),
    ]
    return [replace(pair, name=UNSEEN + pair.name) for pair in found]


def measured(pair: Pair, arguments: argparse.Namespace, folder: Path) -> Row:
    """Measures a pair and writes both traces into `folder`."""
    traces = {source: trace_of(folder, pair, source) for source in SUFFIXES}
    found = measure(
        pair.before, pair.after, traces, copies=arguments.copies, rounds=arguments.rounds, turn_seconds=arguments.turn
    )
    unrecorded = {source: found.before.seconds[copy] for source, copy in found.recorded_by.items()}
    noise = max(found.before.spread, found.after.spread)
    return Row(pair.name, found.before.median, found.after.median, noise, found.lost, unrecorded, {})


def predicted(pair: Pair, folder: Path, row: Row) -> dict[str, Predicted]:
    """What each trace says: the unrecorded step of the process that recorded it, times predicted over replayed."""
    found = {}
    for source, before_s in row.unrecorded_s.items():
        graph = load(trace_of(folder, pair, source))
        try:
            expected, low, high = pair.ratio(graph)
        except ScenarioError as error:
            print(f"{pair.name}: no prediction from {source}: {error}", file=sys.stderr)
            continue
        traced_ns = graph.info.measured_ns / max(len(graph.info.steps), 1)
        replay_error = simulate(graph).makespan_ns / max(graph.info.measured_ns, 1) - 1
        found[source] = Predicted(
            before_s * expected, before_s * low, before_s * high, replay_error, traced_ns / 1e9 / before_s - 1
        )
    return found


def trace_of(folder: Path, pair: Pair, source: str) -> Path:
    return folder / f"{pair.name.replace(' ', '_').replace(':', '')}{SUFFIXES[source]}"


def main() -> int:
    parser = argparse.ArgumentParser(description="What-if predictions against the truth on a CPU.")
    parser.add_argument("--copies", type=int, default=3, help="processes of each program (default: 3)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each process (default: 5)")
    parser.add_argument("--turn", type=float, default=0.3, help="seconds of a turn (default: 0.3)")
    parser.add_argument("--only", action="append", default=[], help="only pairs whose name contains this; repeatable")
    parser.add_argument("--list", action="store_true", help="the names of the pairs")
    parser.add_argument("--keep", type=Path, help="folder for the traces")
    parser.add_argument("--predict-again", type=Path, help="predict from traces that --keep left, measure nothing")
    add_results_option(parser)
    arguments = parser.parse_args()
    chosen = [pair for pair in pairs() if not arguments.only or any(part in pair.name for part in arguments.only)]
    if arguments.list:
        print("\n".join(pair.name for pair in chosen))
        return 0
    facts = machine()
    rows = read_rows(arguments.results)
    names = [pair.name for pair in pairs()]
    ordered, text = [rows[known] for known in names if known in rows], ""
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.predict_again or arguments.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for pair in chosen:
            if pair.cores > len(os.sched_getaffinity(0)):
                print(f"{pair.name}: left out, it needs {pair.cores} cores", file=sys.stderr)
                continue
            if arguments.predict_again:
                if pair.name not in rows:
                    continue
                old = rows[pair.name]
                rows[pair.name] = replace(old, by_source=predicted(pair, folder, old))
            else:
                try:
                    row = measured(pair, arguments, folder)
                except (EOFError, OSError) as error:
                    print(f"{pair.name}: a process of it ended early ({error!r}), see above", file=sys.stderr)
                    continue
                rows[pair.name] = replace(row, by_source=predicted(pair, folder, row))
            row = rows[pair.name]
            ordered = [rows[known] for known in names if known in rows]
            # what was measured stays measured if the rest is interrupted
            text = write_rows(arguments.results, facts, ordered)
            errors = "  ".join(f"{source} {row.error(source):+.1%}" for source in row.by_source)
            print(f"{pair.name}: {row.before_s * 1e3:.2f} to {row.after_s * 1e3:.2f} ms, {errors}", flush=True)
    print(text)
    return 0 if all(abs(row.error(source)) <= LIMIT for row in ordered for source in row.by_source) else 1


if __name__ == "__main__":
    raise SystemExit(main())
