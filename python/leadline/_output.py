"""Every file that Leadline writes for a person, in one place: what may be replaced, and how.

Promises: an input is never replaced; a file of another kind is never replaced unless the user said so; a file appears
whole, by a rename, or not at all; no symbolic link is followed. Needs the standard library only, since the profiled
process writes files too.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from leadline._dataclass import dataclass

HEAD_BYTES: Final = 1 << 16
"""What is read of a file to say of which kind it is."""
_META_MEMBER = "meta.json"
_FORMAT_NAME = "leadline"
_MAX_META_BYTES = 16 << 20
_TOKEN = 8
_KEPT_OF_NAME = 200  # bytes; with the dots, the token and the ending it fits into the 255 that a name may have
TEMPORARY_ENDING: Final = r"\.[0-9a-f]{16}\.tmp"
"""How the name of a file that is being written goes on after a dot and the final name, as a regular expression."""
_CELLS = re.compile(r"\w+(,\w+){0,2}")
_TOKENS = re.compile(r'[{}\[\],:]|"(?:[^"\\]|\\.)*"')


class OutputError(Exception):
    """A file will not or cannot be written. `str(error)` is one sentence: what, why, what to do."""


@dataclass(frozen=True)
class Kind:
    """Of which kind a file's contents are."""

    name: str
    """For a person: "a profile", "JSON"."""
    detail: str = ""
    """What tells such files apart: how JSON, a text or the title of a page begins."""

    def may_become(self, new: Kind) -> bool:
        """Whether a file of this kind may be replaced by one of kind `new`. That a text names Leadline does not make it
        ours: notes and a README do, too."""
        if self.name in ("", "a profile") or self.name != new.name:
            return self.name in ("", new.name)
        return self.detail == new.detail


EMPTY: Final = Kind("")
PROFILE: Final = Kind("a profile")


def is_package(path: Path) -> bool:
    """Whether a file is a profile, of any version: a ZIP whose `meta.json` says so. Other ZIPs are not (a torch
    checkpoint is one). Raises OSError."""
    import zipfile

    try:
        with zipfile.ZipFile(path) as package:
            member = package.getinfo(_META_MEMBER)
            if member.file_size > _MAX_META_BYTES:
                return False
            meta = json.loads(package.read(member))
            return isinstance(meta, dict) and dict(meta.get("format") or {}).get("name") == _FORMAT_NAME
    except OSError:
        raise
    except Exception:  # no ZIP, a damaged one, an encrypted one, ...: whatever it is, it is not ours
        return False


def kind_of_file(path: Path) -> Kind:
    """Of which kind a regular file is. Raises OSError."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    kind = kind_of(head)
    return PROFILE if kind.name == _ZIP and is_package(path) else kind


_ZIP = "a ZIP archive"


def kind_of(head: bytes) -> Kind:
    """Of which kind a file is that begins with `head` (`HEAD_BYTES` of it are enough)."""
    if not head:
        return EMPTY
    if head[:4] == b"PK\x03\x04":
        member = head[30 : 30 + int.from_bytes(head[26:28], "little")]
        return Kind(_ZIP, Path(os.fsdecode(member)).suffix)
    if head[:2] == b"\x1f\x8b":
        inner = kind_of(_unpacked(head))
        return Kind(f"{inner.name or 'nothing'} in gzip", inner.detail)
    text = _as_text(head)
    if text is None:
        return Kind("binary data", _binary(head))
    start = text.lstrip("\ufeff \t\r\n")
    if start[:9].lower() == "<!doctype":
        title = re.search(r"<title>([^<]*)", text)
        return Kind("an HTML page", _title(title[1]) if title else "")
    if start[:1] in ("{", "["):
        return Kind("JSON", _beginning_of_json(start))
    line = start.partition("\n")[0]
    if "," in line and (cells := _CELLS.match(line)) is not None and line[cells.end() :][:1] in (",", ""):
        return Kind("text", cells[0])  # a table: its first columns
    word = re.search(r"[^\W\d_]+", start)
    if word is None:
        return Kind("text")
    before, after = re.sub(r"[\w\s]", "", start[: word.start()]), re.match(r"[^\w\n]*", start[word.end() :])
    return Kind("text", before + word[0].lower().removesuffix("s") + (after[0] if after else ""))


def _title(text: str) -> str:
    """A title without the name of what the page is about, which stands in front of ours."""
    return text.strip().rpartition(" - ")[2]


def _beginning_of_json(text: str) -> str:
    """The brackets and texts up to the second key, numbers left out: "$schema" alone begins files of many kinds."""
    return "".join(one[0] for one in itertools.islice(_TOKENS.finditer(text), 6))


def _unpacked(head: bytes) -> bytes:
    try:
        return zlib.decompressobj(31).decompress(head, HEAD_BYTES)
    except zlib.error:
        return b"\0"


def _as_text(head: bytes) -> str | None:
    if b"\0" in head:
        return None
    try:
        return head.decode("utf-8")
    except UnicodeDecodeError as error:
        return head[: error.start].decode("utf-8") if error.start > len(head) - 4 and error.start else None


def _binary(head: bytes) -> str:
    """The first bytes; of protocol buffers the first tag and, below it, the first of the message."""
    if head[0] != 0x0A:
        return head[:4].hex()
    at = 1
    while at < len(head) and head[at] & 0x80:
        at += 1
    return f"0a{head[at + 1 : at + 2].hex()}"


# ---------------------------------------------------------------- what a terminal may see

_COLOUR = r"(\x1b\[[0-9;]*m)"
_ACTS = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"


def harmless(text: str, *, colours: bool = False) -> str:
    """`text` without what a terminal acts on but line ends, tabs and, where wanted, `colours`: the last net under names
    that a profile brings; whoever prints a name in colour makes it visible before."""
    if (text.isascii() and text.replace("\n", "").isprintable()) or not re.search(_ACTS, text):
        return text
    parts = re.split(_COLOUR, text) if colours else [text]
    return "".join(one if at % 2 else re.sub(_ACTS, _as_escape, one) for at, one in enumerate(parts))


def _as_escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"


# ---------------------------------------------------------------- may it be written?


def check_output(output: Path, inputs: Iterable[str | os.PathLike[str]] = (), *, folder_is_fine: bool = False) -> None:
    """What can be known before any work: whether `output` names a place for a file, and none that is read. Raises
    OutputError."""
    name, folder = output.name, output.parent
    try:
        if not folder.is_dir():
            raise OutputError(f"Cannot write {output}: there is no folder {folder}; make it first.")
        if len(os.fsencode(name)) > (longest := longest_name(folder)):
            raise OutputError(f"Cannot write {output}: the name is longer than {longest} bytes; choose a shorter one.")
        if folder_is_fine and output.is_dir():
            return
        if not name or output.is_dir():
            raise OutputError(f"Cannot write {output}: it is a folder; give a file name.")
        here = output.stat() if output.exists() else None
    except OSError as error:
        raise OutputError(f"Cannot write {output}: {error.strerror}; choose another file.") from None
    if here is not None and stat.S_ISREG(here.st_mode):
        check_input(output, inputs)


def check_input(output: Path, inputs: Iterable[str | os.PathLike[str]]) -> None:
    """Raise OutputError where the file `output` is one of `inputs`."""
    here = output.stat()
    if any(is_same(here, one) for one in inputs):
        raise OutputError(f"Will not write {output}: it is the file that is read; choose another file.")


def is_same(here: os.stat_result, other: str | os.PathLike[str]) -> bool:
    """Whether `other` is that file, by whatever name, hard link or symbolic link."""
    try:
        return os.path.samestat(here, Path(other).stat())
    except (OSError, ValueError):
        return False


def check_kind(output: Path, new: Kind, *, force: bool = False) -> None:
    """Whether what is at `output` may be replaced by a file of kind `new`. Raises OutputError."""
    try:
        if not output.exists():
            return
        if not output.is_file():
            raise OutputError(f"Will not replace {output}: it is no regular file; choose another file.")
        if force:
            return
        old = kind_of_file(output)
    except OSError as error:
        raise OutputError(f"Cannot write {output}: {error.strerror}; choose another file.") from None
    if old.may_become(new):
        return
    if new == PROFILE:
        raise OutputError(f"Will not replace {output}: it is not a profile; choose another file.")
    what = f"it is {old.name}" if old.name != new.name else "it holds something else than would be written"
    raise OutputError(f"Will not replace {output}: {what}; choose another file, or add --force.")


def longest_name(folder: Path) -> int:
    """How many bytes a name in `folder` may have. Raises OSError."""
    try:
        return os.pathconf(folder, "PC_NAME_MAX")
    except ValueError:
        return 255


# ---------------------------------------------------------------- writing


def temporary_beside(path: Path) -> Path:
    """A name in the same folder that nobody can guess and that fits wherever `path` fits."""
    name = os.fsdecode(os.fsencode(path.name)[:_KEPT_OF_NAME])
    return path.with_name(f".{name}.{os.urandom(_TOKEN).hex()}.tmp")


def open_new(path: Path, mode: int = 0o666) -> BinaryIO:
    """A file that was not there, open for writing; links are not followed. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    return os.fdopen(os.open(path, flags, mode), "wb")


@contextlib.contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """An open file that becomes `path` when the block ends, and nothing where it raises. Raises OSError."""
    partial = temporary_beside(path)
    with open_new(partial, mode) as file:
        try:
            yield file
            file.close()  # a full disk shows here at the latest
            partial.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise


def write_text(path: Path, text: str, mode: int = 0o666) -> None:
    """`path` with this text, whole or as it was. Raises OSError."""
    with replacing(path, mode) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
