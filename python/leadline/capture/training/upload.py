"""Files of a run to an object store, through fsspec (extra `[remote]`): `s3://bucket/run`, `gs://...`, `memory://...`.

Promise: the local files stay, and a store that cannot be reached costs a sentence, never the training.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from leadline.capture.messages import say


def upload(url: str, paths: Iterable[Path]) -> list[str]:
    """Put the files that exist below `url` under their own names; returns their addresses there."""
    wanted = [path for path in paths if path.is_file()]
    if not url or not wanted:
        return []
    try:
        import fsspec

        store: Any
        store, root = fsspec.core.url_to_fs(url)
        store.makedirs(root, exist_ok=True)
        put = []
        for path in wanted:
            target = f"{root.rstrip('/')}/{path.name}"
            store.put_file(str(path), target)
            put.append(target)
        return put
    except ImportError as error:
        say(f"files are not uploaded to {url}: {error} (pip install 'leadline[remote]').")
    except Exception as error:
        say(f"files are not uploaded to {url}: {error!r}; they stay in {wanted[0].parent}.")
    return []
