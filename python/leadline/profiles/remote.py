"""Files that lie elsewhere: `s3://bucket/run`, `https://host/x.leadline`, whatever fsspec reaches (extra `[remote]`).

Only what is asked of a large file is fetched, in small pieces; a small one, and one of a server that knows no ranges,
as a whole. Whatever goes wrong there is one ProfileFileError that names the address.
"""

from __future__ import annotations

import io
import re
from typing import IO, Any

from leadline.profiles.errors import ProfileFileError

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://")
_BLOCK_BYTES = 1 << 16
_WHOLE_BYTES = 4 << 20
_MOST_BYTES = 1 << 30
"""Of a file that can be fetched as a whole only."""
_SUFFIX = ".leadline"


def is_address(name: str) -> bool:
    """Whether a name is the address of something elsewhere."""
    return bool(_ADDRESS.match(name))


def open_address(name: str) -> tuple[IO[bytes], int]:
    """The file there, and its size. Raises ProfileFileError."""
    store, path = _store(name)
    try:
        file: Any = store.open(path, "rb", block_size=_BLOCK_BYTES)
        size = getattr(file, "size", None)
        if isinstance(size, int) and size > _MOST_BYTES and not _knows_ranges(file, size):
            raise ProfileFileError(f"{name} has {size >> 20} MiB, and its server sends it as a whole only.")
        if isinstance(size, int) and size > _WHOLE_BYTES and _knows_ranges(file, size):
            return file, size
        file.close()
        data = bytes(store.cat_file(path))
    except ProfileFileError:
        raise
    except Exception as error:  # every store has errors of its own
        raise ProfileFileError(f"{name} cannot be read: {_reason(error)}.") from None
    return io.BytesIO(data), len(data)


def _knows_ranges(file: Any, size: int) -> bool:
    """Whether its end can be had without its beginning."""
    try:
        file.seek(size - 1)
        known = len(file.read(1)) == 1
        file.seek(0)
    except Exception:
        return False
    return known


def list_address(name: str) -> list[str]:
    """The profiles that an address, a folder of a store or a pattern names, as addresses. Raises ProfileFileError."""
    store, path = _store(name)
    try:
        if any(letter in path for letter in "*?["):
            found = store.glob(path)
        elif not path.endswith(_SUFFIX) and store.isdir(path):
            found = [one for one in store.find(path) if str(one).endswith(_SUFFIX)]
        else:
            found = [path]
        return sorted(str(store.unstrip_protocol(one)) for one in found)
    except Exception as error:
        raise ProfileFileError(f"{name} cannot be listed: {_reason(error)}.") from None


def _store(name: str) -> tuple[Any, str]:
    try:
        import fsspec

        store, path = fsspec.core.url_to_fs(name)
        return store, str(path)
    except ImportError as error:
        raise ProfileFileError(
            f"{name} needs a package that is not here ({error}); `pip install 'leadline[remote]'`, and the package of "
            "its store (s3fs, gcsfs, aiohttp)."
        ) from None
    except Exception as error:
        raise ProfileFileError(f"{name} is not an address that can be read: {_reason(error)}.") from None


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())[:200].rstrip(".")
    return text or type(error).__name__
