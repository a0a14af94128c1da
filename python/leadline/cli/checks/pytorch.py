"""Can torch's operators be measured: tried on a known operator, forward and backward, in a process of its own."""

from __future__ import annotations

import importlib.metadata
import importlib.util

from leadline.cli.checks import FAILED, LIMITED, OK, Finding
from leadline.cli.checks.probe import CALLS, run_probe
from leadline.verdict.received import ENOUGH

TITLE = "torch"
_EXPECTED = {"aten::mm", "MmBackward0"}


def check() -> list[Finding]:
    """See `leadline.cli.checks`."""
    if importlib.util.find_spec("torch") is None:
        text = "not installed for this Python; its programs are measured by Python regions only"
        return [Finding("version", LIMITED, text, "install leadline in the environment that has torch")]
    findings = [Finding("version", OK, _version())]
    result = run_probe("torch")
    if result.error:
        return [*findings, Finding("self-test", FAILED, result.error, "see whether `python -c 'import torch'` works")]
    status = result.values["available"].get("torch", {})
    if not status.get("ok"):
        return [*findings, Finding("self-test", FAILED, str(status.get("message")), "use a supported release of torch")]
    missing = sorted(name for name in _EXPECTED if not any(name in seen for seen in result.values["operators"]))
    if missing:
        text = f"a known program ran without {', '.join(missing)} being seen"
        return [*findings, Finding("self-test", FAILED, text, "please report this with the output of --format json")]
    for source, number in result.values["received"].items():
        if number < ENOUGH * CALLS:
            text = f"only {number:,} of {CALLS:,} known {source} arrived: their figures are too small"
            findings.append(Finding("received", FAILED, text, "please report this with the output of --format json"))
    if slower := status.get("slower"):
        text = f"{slower}, so measuring an operator costs a third more than necessary"
        findings.append(Finding("callbacks", LIMITED, text, "please report this with the output of --format json"))
    return [*findings, Finding("self-test", OK, f"{CALLS:,} known operators were seen, forward and backward")]


def _version() -> str:
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return "present, with a version that is not recorded"
