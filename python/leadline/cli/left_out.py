"""Options of `leadline run` and `leadline attach` whose value may be left out."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.capture.config import CPU_SAMPLE_HZ, WAIT_HZ
from leadline.cli.instruction_arguments import INSTRUCTIONS
from leadline.cli.tool_arguments import TOOL_OPTIONS_WITH_VALUES

_WITH_VALUE = (
    "-o", "--output", "--nvtx", "--trace", "--os-trace", "--kernel", "--trace-max-events", "--flush-interval",
    "--hang-after", "--max-nodes", "--keep", "--budget", "--duty", "--counter", "--gpu-metrics", "--endpoint",
    "--accelerator", *TOOL_OPTIONS_WITH_VALUES,
)  # fmt: skip


_RATES = {"--cpu-sample": CPU_SAMPLE_HZ, "--wait": WAIT_HZ}
"""Options whose value may be left out."""
_WITHOUT_VALUE = {"--native": "--native=yes", **INSTRUCTIONS}


def split_rates(words: Sequence[str]) -> list[str]:
    """As `split` does it, where no program follows."""
    return [
        _WITHOUT_VALUE[word]
        if word in _WITHOUT_VALUE
        else f"{word}={_RATES[word]:g}"
        if word in _RATES and not _is_number("".join(words[place + 1 : place + 2]))
        else word
        for place, word in enumerate(words)
    ]


def split(words: Sequence[str], with_value: Sequence[str] = _WITH_VALUE) -> list[str]:
    """Options whose value may be left out get one, so that the program behind them is not taken for it. `with_value`:
    the verb's options that take a word."""
    found: list[str] = []
    of_option = False  # the word is the value of the option before it
    for place, word in enumerate(words):
        if of_option:
            found.append(word)
            of_option = False
        elif word in ("--", "-m", "-c") or not word.startswith("-"):
            return [*found, *words[place:]]  # the program and its own arguments
        elif word in _WITHOUT_VALUE:
            found.append(_WITHOUT_VALUE[word])
        elif word in _RATES and not _is_number("".join(words[place + 1 : place + 2])):
            found.append(f"{word}={_RATES[word]:g}")
        else:
            found.append(word)
            of_option = word in (*with_value, *_RATES)
    return found


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
