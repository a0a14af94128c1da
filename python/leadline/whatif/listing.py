"""`--list`: scenarios with their parameters, defaults and units."""

from __future__ import annotations

import json

from leadline.whatif.scenarios import SCENARIOS


def list_scenarios(form: str) -> str:
    """All scenarios as text, markdown or JSON."""
    if form == "json":
        rows = [
            {
                "name": scenario.name,
                "advice": scenario.advice,
                "parameters": [
                    {
                        "name": parameter.name,
                        "unit": parameter.unit.value,
                        "default": parameter.default,
                        "choices": list(parameter.choices),
                        "meaning": parameter.meaning,
                    }
                    for parameter in scenario.parameters
                ],
            }
            for scenario in SCENARIOS
        ]
        return json.dumps(rows, indent=2) + "\n"
    lines: list[str] = ["# Scenarios", ""] if form == "markdown" else []
    for scenario in SCENARIOS:
        lines.append(
            f"- `{scenario.name}`: {scenario.advice}" if form == "markdown" else f"{scenario.name}: {scenario.advice}"
        )
        for parameter in scenario.parameters:
            default = f", default {parameter.default}" if parameter.default is not None else ""
            choices = f" ({' | '.join(parameter.choices)})" if parameter.choices else ""
            mark = "  - " if form == "markdown" else "    "
            lines.append(f"{mark}{parameter.name}: {parameter.meaning}{choices} [{parameter.unit.value}{default}]")
    return "\n".join(lines) + "\n"
