"""Another allocator of the C library, where one is installed."""

from __future__ import annotations

import ctypes.util
import os
from pathlib import Path

from leadline.remedies.base import NotApplied, Remedy
from leadline.remedies.trial import Trial


class Malloc(Remedy):
    name = "malloc"
    changes = "starts the program with another malloc (LD_PRELOAD)"
    needs = "jemalloc|tcmalloc"
    choices = ("jemalloc", "tcmalloc")

    def environment(self) -> dict[str, str]:
        for name in (self.chosen, f"{self.chosen}_minimal"):
            found = ctypes.util.find_library(name)
            if found:
                return {"LD_PRELOAD": " ".join(filter(None, (found, os.environ.get("LD_PRELOAD", ""))))}
        raise NotApplied(f"no {self.chosen} is installed")

    def outcome(self, trial: Trial) -> str:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
        return "" if self.chosen in maps else f"{self.chosen} was not loaded"
