"""Operations of programs nobody here wrote, against torch's counter in the same run: `operations.py [PROGRAM...]`.

    python -m tests.foreign.operations [PROGRAM...]      from the top folder; gnn, unet and others by default

The counter is corrected for what it leaves out or counts several times (docs/training.md). Exits with 1 when one program
differs, or when something in it was not counted.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.foreign.run import MODES, PROGRAMS, start

PLAIN = ("gnn", "unet", "equivariant", "segmentation", "recommender", "vit", "wav2vec2", "language")
"""Programs of one process that compile nothing: torch's counter looks at no other."""


def count(program: Path, mode: str, output: Path) -> None:
    """Runs the program under both, and leaves what they counted."""
    import runpy

    import torch
    from tests.training.test_flops import corrections
    from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

    import leadline
    from leadline.analysis.flops import flop_columns

    def attention(query, key, value, *rest, out_shape=None, **named) -> int:
        return sdpa_flop_count(query, key, value)

    def attention_backward(gradient, query, key, value, *rest, out_shape=None, **named) -> int:
        return sdpa_backward_flop_count(gradient, query, key, value)

    def distances(one, other, *rest, out_shape=None, **named) -> int:  # a product of rows with two more columns each
        return 2 * torch.Size(one).numel() // one[-1] * (one[-1] + 2) * other[-2]

    aten = torch.ops.aten
    on_cpu = {
        aten._scaled_dot_product_flash_attention_for_cpu: attention,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: attention_backward,
        aten._euclidean_dist: distances,
    }
    sys.argv = [str(program), mode]
    path = output.with_suffix(".leadline")
    with (
        leadline.profile(path, shapes=True, quiet=True),
        FlopCounterMode(display=False, custom_mapping={**corrections(), **on_cpu}) as theirs,
    ):
        runpy.run_path(str(program), run_name="__main__")
    columns = flop_columns(leadline.open(path).tree)
    ours = float((columns.per_call * columns.calls).sum())
    uncounted = [one if isinstance(one, str) else repr(one) for one in columns.uncounted]
    output.write_text(json.dumps({"ours": ours, "theirs": theirs.get_total_flops(), "uncounted": uncounted}))


def main(names: list[str]) -> int:
    wrong = 0
    for program in [PROGRAMS / f"{name}.py" for name in names or PLAIN]:
        for mode in MODES:
            with tempfile.TemporaryDirectory() as folder:
                output = Path(folder) / "counted.json"
                fault = start(
                    [sys.executable, "-m", __spec__.name, "--count", str(program), mode, str(output)], Path(folder)
                )
                found = json.loads(output.read_text()) if not fault else {}
            if fault:
                print(f"{program.stem} {mode}: {fault}", flush=True)
            else:
                same = "equal" if found["ours"] == found["theirs"] else f"torch's counter says {found['theirs']:,.0f}"
                left = f"; not counted: {', '.join(found['uncounted'])}" if found["uncounted"] else ""
                print(f"{program.stem} {mode}: {found['ours']:,.0f} operations, {same}{left}", flush=True)
            wrong += bool(fault) or found["ours"] != found["theirs"] or bool(found["uncounted"])
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--count"]:
        count(Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
    else:
        sys.exit(main(sys.argv[1:]))
