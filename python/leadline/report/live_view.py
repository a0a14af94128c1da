"""`leadline view --live`: the page of a run that goes on. Whenever it is loaded it shows the run as it is then."""

from __future__ import annotations

import contextlib
from pathlib import Path

from leadline.profiles import Profile, ProfileFileError, open_profile
from leadline.profiles.recover import recover_part
from leadline.report.server import View

_PART = ".part"


class LiveView(View):
    """The view of one part directory. Raises ProfileFileError where nothing has been written yet."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ended = directory.with_name(directory.name.removesuffix(_PART))
        super().__init__([(str(self._ended), self._look())])

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[str, bytes] | None:
        """As `View.answer`; the page itself begins a new look."""
        if path == "":
            with contextlib.suppress(ProfileFileError):  # it has just ended: what was seen last stays
                self.replace(0, self._look())
        return super().answer(path, query)

    def _bytes(self, index: int) -> bytes:
        return self.packed(index)

    def _look(self) -> Profile:
        if not self._directory.is_dir() and self._ended.is_file():
            return open_profile(self._ended)
        return recover_part(self._directory).profile
