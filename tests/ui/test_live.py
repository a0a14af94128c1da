"""`leadline view --live` in a browser: the page moves on with the run, keeps what is looked at, holds, and ends."""

import shutil
import threading
import zipfile
from pathlib import Path

import pytest
from tests.profiles.archives import members_of, packed

from leadline._view_server import ViewServer
from leadline.profiles import Profile, write_profile
from leadline.profiles.build import build
from leadline.profiles.builder import synthetic_meta
from leadline.report.live_view import LiveView

pytestmark = pytest.mark.untrue(reason="the segments are drawn, with times of threads that nobody ran")


def looked(calls: int) -> Profile:
    """Paths come before the ones that were there, so every row has another number."""
    more = "\n".join(f"    operator aten::new{number} | time=1/1 call_time=1/1" for number in range(calls))
    return build(
        f"""
process train.py | pid=7 start_ns=5 complete=0
  thread MainThread
{more}
    python main @ /u/t.py:3
      module layer [Linear]
        operator aten::mm | time={100 * calls}/{calls} call_time={100 * calls}/{calls}
"""
    )


class Growing(LiveView):
    """A run that has written each time when the page asks, `looks` times; then its file is there."""

    def __init__(self, directory: Path, looks: int) -> None:
        self.calls, self.last = 1, looks
        self.folder = directory
        self.write()
        super().__init__(directory)

    def write(self) -> None:
        session = self.folder / ("0" * 16)
        session.mkdir(parents=True, exist_ok=True)
        (session / "session.json").write_text("{}")
        (session / "7-7000.json").write_text('{"pid": 7, "parent_pid": 1, "complete": false}')
        new = session / "new"
        new.write_bytes(packed(members_of(looked(self.calls), meta=False), zipfile.ZIP_STORED))
        new.replace(session / "7-7000.segment")

    def answer(self, path: str, query: dict[str, list[str]]):
        if path == "now" and self.calls <= self.last:
            self.calls += 1
            if self.calls <= self.last:
                self.write()
            else:
                whole = looked(self.calls)
                whole.meta.update({**synthetic_meta(), "complete": True})
                write_profile(self.folder.with_suffix(""), whole)
                shutil.rmtree(self.folder)
        return super().answer(path, query)


def test_the_page_moves_on_and_keeps_its_place(tmp_path: Path, browse) -> None:
    view = Growing(tmp_path / "run.leadline.part", 4)
    server = ViewServer(view)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        seen = browse("live.mjs", server.address)
    finally:
        server.close()
        thread.join(10)
    assert seen["says"] == "Live" and seen["banner"] == 0
    assert [int(text) for text in seen["looks"]] == [2, 10], "calls of the first look and of the file"
    assert "layer" in seen["zoomed"] and seen["zoomedLater"] == seen["zoomed"]
    assert seen["search"] == "layer" and seen["page"] == "page-flame"
    assert seen["held"] == "Paused" and seen["unchanged"]
    assert seen["errors"] == []
