"""Fixtures: exports written to files, and speedscope's reading of them (one browser start for all)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from samples import model, strange

from leadline.convert import EXPORTERS, export

JS = Path(__file__).parents[1] / "js"
SPEEDSCOPE = JS / "node_modules" / "speedscope"
READ_BY_SPEEDSCOPE = ("speedscope", "collapsed", "pprof", "cpuprofile")
PROFILES = {"model": model, "strange": strange}


@pytest.fixture(scope="session")
def exported():
    """exported(format, profile, metric=None) -> bytes."""
    by_name = {exporter.name: exporter for exporter in EXPORTERS}

    def make(name, profile, metric=None):
        return export(profile, by_name[name], metric)

    return make


@pytest.fixture(scope="session")
def speedscope_schema():
    path = SPEEDSCOPE / "dist" / "release" / "file-format-schema.json"
    if not path.exists():
        pytest.skip("speedscope's schema comes with `npm ci` in tests/js, which has not been run here.")
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def read_by_speedscope(exported, tmp_path_factory):
    """{(profile, format): what speedscope exports again after reading our file}."""
    chromium = shutil.which("chromium")
    if chromium is None or not SPEEDSCOPE.exists():
        pytest.skip("Reading with speedscope needs the program chromium and `npm ci` in tests/js.")
    folder = tmp_path_factory.mktemp("exports")
    endings = {exporter.name: exporter.endings[0] for exporter in EXPORTERS}
    files = {}
    for name, make in PROFILES.items():
        for format_name in READ_BY_SPEEDSCOPE:
            path = folder / f"{name}{endings[format_name]}"
            path.write_bytes(exported(format_name, make()))
            files[name, format_name] = path
    done = subprocess.run(
        ["node", "speedscope.mjs", *map(str, files.values())],
        cwd=JS, env={**os.environ, "CHROMIUM": chromium}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(zip(files, json.loads(done.stdout), strict=True))
