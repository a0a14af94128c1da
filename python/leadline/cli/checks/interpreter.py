"""Can the frames of this Python be read, and its clock be trusted: tried on a known call path."""

from __future__ import annotations

import platform
import sys
import sysconfig

from leadline.cli.checks import FAILED, LIMITED, OK, Finding
from leadline.cli.checks.probe import run_probe

TITLE = "python"
_EXPECTED = ("probe", "known_path", "<lambda>", "innermost")


def check() -> list[Finding]:
    """See `leadline.cli.checks`."""
    version = f"{platform.python_implementation()} {platform.python_version()} at {sys.executable}"
    findings = [Finding("version", OK, version)]
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        text = "this is a free-threaded build, on which leadline has not been tested"
        findings.append(Finding("free threading", LIMITED, text, "measure with the ordinary build of the same version"))
    result = run_probe()
    if result.error:
        return [
            *findings,
            Finding("self-test", FAILED, result.error, "please report this with the output of --format json"),
        ]
    native = result.values["native"]
    findings.append(_frames(result.values["path"], native))
    if native["clock"] == "counter":
        findings.append(Finding("clock", OK, "the processor's time-stamp counter"))
    else:
        text = "clock_gettime: each operator costs some tens of nanoseconds more than with the time-stamp counter"
        findings.append(Finding("clock", LIMITED, text))
    return findings


def _frames(path: list[str], native: dict[str, object]) -> Finding:
    if not native["python_frames"]:
        reason = str(native["python_frames_missing"])
        return Finding("frames", FAILED, f"call paths will have no Python lines: {reason}", "use a supported version")
    names = [name.rpartition(".")[2] for name in path]
    if tuple(names[-len(_EXPECTED) :]) != _EXPECTED:
        return Finding("frames", FAILED, f"a known call path was read as {' > '.join(names)}", "please report this")
    return Finding("frames", OK, "a known call path was read without error")
