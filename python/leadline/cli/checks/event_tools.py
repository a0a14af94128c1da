"""Where events for tools can come from here."""

from __future__ import annotations

from leadline.cli.checks import LIMITED, OK, Finding

TITLE = "event tools (leadline run --tool)"


def check() -> list[Finding]:
    """See `leadline.cli.checks`."""
    from leadline.tools.backends import BACKENDS, module_of

    found = []
    for name in BACKENDS:
        module = module_of(name)
        why, _, remedy = module.probe().partition("; ")
        found.append(
            Finding(f"backend {name}", LIMITED, why, remedy) if why else Finding(f"backend {name}", OK, module.DOC)
        )
    return found
