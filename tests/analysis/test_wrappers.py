"""A wrapper of a library that only passes a call on is neither what a line runs for nor the name of a place.

The wrapper of `optimizer.step` is the one that torch 2.9's learning-rate schedulers make; that of a model's `forward`,
transformers'.
"""

from __future__ import annotations

import pytest
from tests.analysis.test_findings import MS
from tests.analysis.test_place import known, on_line, operator

from leadline.verdict.text import as_lines

PACKAGES = "/usr/lib/python3.11/site-packages"
WRAPPED_STEP = (
    "python LRScheduler.__init__.<locals>.patch_track_step_called.<locals>.wrap_step.<locals>.wrapper "
    f"@ {PACKAGES}/torch/optim/lr_scheduler.py:166"
)


def test_a_step_that_a_scheduler_has_wrapped_does_not_run_in_the_scheduler():
    wrapped = on_line(WRAPPED_STEP, "  phase optimizer", operator("    ", "aten::mul_", 5, 50))
    assert "scheduler" not in known(wrapped)
    scheduler = f"python LRScheduler.step @ {PACKAGES}/torch/optim/lr_scheduler.py:205"
    assert "runs in a learning-rate scheduler" in known(on_line(scheduler, operator("  ", "aten::mul", 5, 10)))


def test_a_function_made_inside_another_that_does_the_work_is_where_it_runs():
    average = f"python get_ema_multi_avg_fn.<locals>.ema_update @ {PACKAGES}/torch/optim/swa_utils.py:40"
    assert "in a moving average of the weights" in known(on_line(average, operator("  ", "aten::lerp_", 5, 10)))


def test_a_metric_of_the_program_is_one_although_the_library_wraps_its_update():
    wrapped = f"python Metric._wrap_update.<locals>.wrapped_func @ {PACKAGES}/torchmetrics/metric.py:557"
    own = on_line(wrapped, "  python Overlap.update @ /home/ada/train.py:9", operator("    ", "aten::sort", 5, 10))
    assert "in a metric" in known(own, line=9)


@pytest.mark.parametrize("file", ["tables/_decorators.py", "torch/utils/_contextlib.py"])
def test_a_place_is_named_by_what_is_wrapped(file):
    inner = f"python Table.parse @ {PACKAGES}/tables/parse.py:9 | cpu_sample={50 * MS}/50"
    outer = f"python deprecated.<locals>.wrapper @ {PACKAGES}/{file}:3"
    said = " ".join(as_lines(on_line(outer, f"  {inner}").verdict))
    assert "Table.parse in main" in said
    assert "wrapper" not in said
