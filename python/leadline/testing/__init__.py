"""A pytest plugin: the fixture `leadline_benchmark` fails a test whose code became slower or larger than a baseline.

    # conftest.py
    pytest_plugins = ["leadline.testing"]

    # test_speed.py
    def test_step(leadline_benchmark):
        leadline_benchmark(lambda: train_step(model, batch), steps=20)

The first run, and any with `--leadline-update`, writes the baseline; later runs give the verdict of `leadline gate`.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from leadline.capture import api
from leadline.compare import Limits, Verdict, compare, judge
from leadline.compare.gate import FAILED, UNCLEAR
from leadline.profiles import open_profile
from leadline.report.comparison import text_verdict

_ALLOWED = ("program", "arguments")  # how pytest was started says nothing about the code


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("leadline")
    group.addoption("--leadline-baseline", metavar="DIR", default=".leadline-baseline", help="where baselines are kept")
    group.addoption("--leadline-update", action="store_true", help="write new baselines instead of comparing")
    group.addoption("--leadline-max-slowdown", metavar="PERCENT", default="5%", help="of a step (default: 5%%)")
    group.addoption("--leadline-max-memory", metavar="PERCENT", help="of peak and allocated bytes (default: any)")


class Benchmark:
    """Called once or more in a test; each call is compared with its own baseline."""

    def __init__(self, config: pytest.Config, name: str, folder: Path) -> None:
        self._config, self._name, self._folder = config, name, folder
        self._calls = 0

    def __call__(
        self, function: Callable[[], Any], *, steps: int = 20, runs: int = 4, warmup: int = 2
    ) -> Verdict | None:
        """Profiles `runs` runs of `steps` calls of `function` and compares them; None where a baseline was written.

        Fails the test beyond the limits; skips it where there is no verdict, with the reason.
        """
        kept = Path(self._config.getoption("--leadline-baseline"))
        name = f"{self._name}-{self._calls}"
        self._calls += 1
        for _ in range(warmup):
            function()
        known = sorted(kept.glob(f"{name}-run*.leadline"))
        files = [self._profiled(function, steps, self._folder / f"{name}-run{run}.leadline") for run in range(runs)]
        if self._config.getoption("--leadline-update") or not known:
            self._keep(kept, known, files)
            return None
        found = compare([open_profile(file) for file in known], [open_profile(file) for file in files])
        verdict = judge(found, Limits(self._limit("slowdown"), self._limit("memory"), _ALLOWED))
        if verdict.code == FAILED:
            pytest.fail(text_verdict(verdict), pytrace=False)
        if verdict.code == UNCLEAR:
            pytest.skip(text_verdict(verdict))
        return verdict

    @staticmethod
    def _profiled(function: Callable[[], Any], steps: int, asked: Path) -> Path:
        """The file of one run, which has another name where the one asked for was taken."""
        api.start(asked)
        try:
            for _ in range(steps):
                function()
        finally:
            made = api.stop()
        if made is None:
            pytest.fail("leadline_benchmark could not write its profile, or another session measures this process.")
        return made

    @staticmethod
    def _keep(kept: Path, known: list[Path], files: list[Path]) -> None:
        """All runs or none: old ones are there until the new ones are, and no half of a file is ever seen."""
        kept.mkdir(parents=True, exist_ok=True)
        made = []
        for file in files:
            copy = kept / f".{file.name}.{os.getpid()}"
            shutil.copyfile(file, copy)
            made.append((copy, kept / file.name))
        for copy, place in made:
            copy.replace(place)
        for old in set(known) - {place for _, place in made}:
            old.unlink(missing_ok=True)

    def _limit(self, name: str) -> float | None:
        text = self._config.getoption(f"--leadline-max-{name}")
        if text is None:
            return None
        try:
            return float(str(text).strip().removesuffix("%")) / 100
        except ValueError:
            raise pytest.UsageError(f"--leadline-max-{name}: {text!r} is not a percentage such as 5%.") from None


@pytest.fixture
def leadline_benchmark(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Benchmark]:
    """See `Benchmark`."""
    yield Benchmark(request.config, re.sub(r"[^\w.-]+", "_", request.node.nodeid), tmp_path)
