"""Files by build id from debuginfod servers (elfutils' protocol: GET /buildid/ID/debuginfo or /executable).

What was fetched lies where elfutils' own client looks, so that gdb, perf and Leadline fetch a file once between them:
`$DEBUGINFOD_CACHE_PATH`, else `$XDG_CACHE_HOME/debuginfod_client`, else `~/.cache/debuginfod_client`.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

Kind = Literal["debuginfo", "executable"]
TIMEOUT_S = 90
"""Seconds without a byte, as elfutils' client waits."""
_BUILD_ID = re.compile(r"[0-9a-f]{4,128}")
_NOT_FOUND = (400, 404, 410)


class DebugServers:
    """Servers asked one after the other; one that does not answer is named once and not asked again.

    `say` is called before something is fetched, with the server and what for. `sentences`: one for each server that
    could not be used.
    """

    def __init__(
        self,
        urls: Sequence[str],
        cache: Path,
        say: Callable[[str], None] = lambda _: None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._urls = [url.rstrip("/") for url in urls]
        self._cache = cache
        self._say = say
        self._timeout_s = timeout_s
        self._unknown: set[tuple[str, Kind]] = set()
        self.sentences: list[str] = []

    def file(self, build_id: str, kind: Kind) -> Path | None:
        """The file with this build id; None where no server has it. The file is not looked into."""
        if not _BUILD_ID.fullmatch(build_id) or (build_id, kind) in self._unknown:
            return None
        kept = self._cache / build_id / kind
        if kept.is_file() and kept.stat().st_size:  # elfutils keeps an empty file for what no server had
            return kept
        for url in list(self._urls):
            try:
                if self._fetch(f"{url}/buildid/{build_id}/{kind}", kept):
                    return kept
            except (OSError, ValueError) as error:  # URLError is an OSError; ValueError: no address at all
                self._urls.remove(url)
                reason = getattr(error, "reason", error)
                self.sentences.append(f"The debuginfod server {url} gave no answer ({reason}) and was not asked again.")
        self._unknown.add((build_id, kind))
        return None

    def _fetch(self, address: str, to: Path) -> bool:
        """Whether the server has it. Raises OSError or ValueError where it cannot be asked or breaks off."""
        if not address.startswith(("http://", "https://")):
            raise ValueError("no http or https address")
        try:
            answer = urllib.request.urlopen(address, timeout=self._timeout_s)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in _NOT_FOUND:
                return False
            raise
        with answer:
            size = answer.headers.get("Content-Length", "")
            self._say(f"Fetching {address}" + (f" ({int(size) / 1e6:,.1f} MB)." if size.isdigit() else "."))
            to.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=to.parent, delete=False) as part:
                try:
                    shutil.copyfileobj(answer, part, 1 << 20)
                    part.flush()
                    if size.isdigit() and part.tell() != int(size):
                        raise OSError("the answer ended early")
                    Path(part.name).replace(to)
                except BaseException:
                    Path(part.name).unlink(missing_ok=True)
                    raise
        return True


def servers_of(environment: Mapping[str, str], say: Callable[[str], None] = lambda _: None) -> DebugServers | None:
    """Those that `DEBUGINFOD_URLS` names (divided by spaces), as for gdb and perf; None where it names none."""
    urls = [url for url in environment.get("DEBUGINFOD_URLS", "").split() if url]
    if not urls:
        return None
    home = Path(environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME") or "/") / ".cache")
    cache = Path(environment.get("DEBUGINFOD_CACHE_PATH") or home / "debuginfod_client")
    timeout = environment.get("DEBUGINFOD_TIMEOUT", "")
    return DebugServers(urls, cache, say, float(timeout) if timeout.isdigit() and int(timeout) else TIMEOUT_S)
