"""Random hostile files against the reader, under a limit of memory: every one opens or is refused with
ProfileFileError.

    python -m tests.profiles.fuzz --seconds 600 [--seed N] [--keep FOLDER]

A file that opens is then used in every way (walked, rolled up, drawn, merged, written again), since what the reader
lets pass must not hurt anyone later. Exit code 1 on the first other exception, or when a file takes longer than
`--slowest` seconds; the file is kept and its number printed. The same seed gives the same files.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import struct
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tests.fuzzing import Fuzzer, main
from tests.profiles.archives import Members, column, members_of, packed, sample, with_header

from leadline.cli.main import main as run_command
from leadline.convert import EXPORTERS, What
from leadline.profiles import Profile, ProfileFileError, open_profile, write_profile
from leadline.profiles.draw import draw
from leadline.profiles.merge import merge_profiles
from leadline.schema import METRICS, TABLES, MetricKind

CAPTURED = Path(__file__).parents[1] / "compat" / "v1-torch.leadline"
"""A real capture of three processes with a trace window."""
_EXTREMES = (0, 1, -1, 2, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, -(2**63), 2**64 - 1)
_TYPES = ("|u1", "<i2", "<i4", "<u4", "<i8", "<u8", "<f8", ">i4", "|O", "|b1", "<f2", "|S8", "<M8[ns]")
_HEADERS = (
    "{'descr': '<i4', 'fortran_order': False, 'shape': (%d,), }\n",
    "{'descr': '<u4', 'fortran_order': True, 'shape': (%d,), }\n",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (%d, 4), }\n",
    "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (%d,), }\n",
    "{'descr': '|O', 'fortran_order': False, 'shape': (%d,), }\n",
    "(((((((%d",
)


def change_value(random: random.Random, members: Members) -> None:
    """One value of one column, to something far or near."""
    dtypes = {f"{key}.{one.name}.npy": one.dtype for key, table in TABLES.items() for one in table.columns}
    name = random.choice(list(dtypes))
    dtype = dtypes[name]
    if name not in members:
        return
    data = bytearray(members[name])
    size = np.dtype(dtype).itemsize
    count = (len(data) - 128) // size
    if count <= 0:
        return
    at = 128 + random.randrange(count) * size
    value = random.choice(_EXTREMES) if random.random() < 0.3 else random.randrange(-2, 14)
    data[at : at + size] = (value % 2 ** (8 * size)).to_bytes(size, "little")
    members[name] = bytes(data)


def change_column(random: random.Random, members: Members) -> None:
    """A column of another type, another length, or with a header that lies."""
    name = random.choice(list(members))
    length = random.choice((0, 1, 2, 9, 10, 1000))
    kind = random.randrange(4)
    if kind == 0:
        dtype = random.choice(_TYPES)
        values = [None] * length if dtype == "|O" else np.zeros(length, dtype)
        members[name] = column(values, dtype)
    elif kind == 1:
        header = random.choice(_HEADERS) % random.choice((length, *_EXTREMES))
        members[name] = with_header(header, random.randbytes(random.randrange(64)))
    elif kind == 2:
        members[name] = members[name][: random.randrange(len(members[name]) + 1)]
    else:
        members[name] += random.randbytes(random.randrange(64))


def change_members(random: random.Random, members: Members) -> None:
    """A member gone, twice under another name, or swapped with another."""
    name, other = random.choice(list(members)), random.choice(list(members))
    kind = random.randrange(3)
    if kind == 0:
        del members[name]
    elif kind == 1:
        members[random.choice(("../x", "x.y.npy", "a/b.npy", "nodes.parent.npy\0", "meta.json "))] = members[name]
    else:
        members[name], members[other] = members[other], members[name]


def change_meta(random: random.Random, members: Members) -> None:
    """Another byte, or another kind of value, in meta.json."""
    text = bytearray(members.get("meta.json", b"{}"))
    if text and random.random() < 0.5:
        text[random.randrange(len(text))] = random.randrange(256)
    else:
        old = random.choice((b'"version": 1', b'"leadline"', b"{}", b"0", b"[]", b"true"))
        new = random.choice((b'"version": 2', b"null", b"1e999", b"[]", b"[{}]", b'"\\ud800"', b"9" * 50, b"[" * 2000))
        text = text.replace(old, new, random.randrange(1, 4))
    members["meta.json"] = bytes(text)


_ODD = (
    None,
    True,
    -1,
    0,
    2**63 - 1,
    1.5,
    "",
    "x",
    "\x1b[31m\u202e",
    [],
    [1],
    ["a", None],
    {},
    {"a": 1},
    {"": []},
    [[]],
    [{}],
)


def change_type(random: random.Random, members: Members) -> None:
    """A value of meta.json, at any depth, becomes one of another type."""
    try:
        meta = json.loads(members["meta.json"])
    except (KeyError, ValueError, RecursionError):
        return
    places: list[tuple[Any, Any]] = []

    def look(value: Any) -> None:
        inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, one in inside:
            if key != "format":
                places.append((value, key))
                look(one)

    look(meta)
    for holder, key in random.sample(places, min(len(places), random.choice((1, 1, 2, 5)))):
        holder[key] = random.choice(_ODD)
    record = random.choice(meta["processes"]) if isinstance(meta.get("processes"), list) and meta["processes"] else meta
    if isinstance(record, dict) and random.random() < 0.5:
        record[random.choice(_KEYS)] = random.choice(_ODD)
    else:
        meta[random.choice(_KEYS)] = random.choice(_ODD)
    members["meta.json"] = json.dumps(meta).encode()


_KEYS = (
    *(
        "tools",
        "passes",
        "launch",
        "sources",
        "fold",
        "findings",
        "kernel",
        "rolled",
        "pid",
        "rank",
        "identity",
        "hostname",
    ),
    *(
        "loaders",
        "observed",
        "exit",
        "program",
        "host",
        "available",
        "dataflow",
        "forked_from",
        "clock",
        "cost",
        "asked",
        "pruned",
    ),
)


def change_bytes(random: random.Random, data: bytes) -> bytes:
    """The archive itself: bits, lengths in its directory, pieces cut, doubled or put in."""
    archive = bytearray(data)
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(archive))
        kind = random.randrange(5)
        if kind == 0:
            archive[at] ^= 1 << random.randrange(8)
        elif kind == 1:
            entry = archive.rfind(b"PK\x01\x02", 0, at)
            if entry >= 0:
                struct.pack_into("<I", archive, entry + random.choice((16, 20, 24, 42)), random.getrandbits(32))
        elif kind == 2:
            del archive[at : at + random.randrange(1, 400)]
        elif kind == 3:
            archive[at:at] = archive[: random.randrange(1, 400)]
        else:
            archive[at : at + 4] = random.randbytes(4)
        if len(archive) < 2:
            break
    return bytes(archive)


def hostile_file(number: int, seed: int, good: Sequence[Members]) -> bytes:
    """File `number` of a seed, made of one of the good ones."""
    chance = random.Random(f"{seed}/{number}")
    members = dict(chance.choice(good))
    if chance.random() < 0.8:
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            weights = (8, 3, 2, 2, 6)
            changes = (change_value, change_column, change_members, change_meta, change_type)
            chance.choices(changes, weights)[0](chance, members)
            if not members:
                break
    data = packed(members, chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
    return change_bytes(chance, data) if chance.random() < 0.3 else data


def use(profile: Profile, other: Profile, output: Path) -> None:
    """Everything a reader of a profile might do with it."""
    tree = profile.tree
    assert sum(1 for _ in tree.walk()) == len(tree)
    for metric in METRICS:
        if metric.additive:
            tree.root.inclusive(metric.kind)
    draw(profile, list(MetricKind), facts=True, devices=True)
    for view in tree.bottom_up().children:
        assert view.path()
    repr((profile.processes, profile.threads, profile.devices, profile.losses))
    try:
        merged = merge_profiles([profile, other])
    except ValueError as error:
        assert "would count twice" in str(error), error
        return
    write_profile(output, merged)
    assert len(open_profile(output).tree) == len(merged.tree)


def commands(path: Path, folder: Path) -> list[list[str]]:
    """The command lines that read a profile and write `folder`/out."""
    output = ["-o", str(folder / "out")]
    formats = [["report", str(path), "--format", name, *output] for name in ("text", "markdown", "json", "html")]
    exports = [["export", str(path), "--format", one.name, *output] for one in EXPORTERS]
    answers = [
        *(["analyze", str(path), "--format", name, *output] for name in ("text", "json", "sarif")),
        *(["summary", str(path), *output], ["summary", str(path), "--json", *output]),
        *(["diff", str(path), str(path), *output], ["query", str(path), "operator:*", *output]),
        *(["redact", str(path), *output], ["merge", str(path), *output], ["info", str(path)]),
        *(
            ["timeline", str(path), *output],
            ["stats", str(path), *output],
            ["report", str(path), "--tool", "all", *output],
        ),
    ]
    return [*formats, *exports, *answers, ["whatif", str(path), *output]]


def use_by_command(number: int, path: Path, folder: Path, opens: bool) -> None:
    """One of the commands, by turns: it writes what it should, or leaves with code 2 and one line on stderr."""
    choices = commands(path, folder)
    chosen = choices[number % len(choices)]
    said = io.StringIO()
    if (folder / "out").is_dir():  # of the command before, if it wrote a folder
        shutil.rmtree(folder / "out")
    (folder / "out").unlink(missing_ok=True)
    with contextlib.redirect_stderr(said):
        code = run_command(chosen)
    # A profile may have no window that a what-if question could be asked of: then it is refused like a bad file.
    refused = code == 2 and len(said.getvalue().splitlines()) == 1
    asked = ("whatif", "timeline", "stats", "merge", "diff")
    windowed = (
        chosen[0] in asked
        or "--tool" in chosen
        or any(one.name in chosen for one in EXPORTERS if one.holds is What.WINDOW)
    )
    if chosen[0] == "merge" and code == 0:
        return  # which reads no events, where the damage may be
    assert refused if not opens else code == 0 or (refused and windowed), f"{chosen}: {code}, {said.getvalue()}"


class ProfileFuzzer(Fuzzer):
    """Hostile profiles."""

    purpose = "Fuzz the reader of profiles."
    stem = "hostile"
    accepted = "opened and were used"

    def __init__(self) -> None:
        self._other = sample()
        self._good = [members_of(self._other), members_of(open_profile(CAPTURED))]

    def make(self, number: int, seed: int) -> tuple[str, bytes]:
        return ".leadline", hostile_file(number, seed, self._good)

    def attempt(self, number: int, path: Path, folder: Path) -> bool:
        profile = None
        with contextlib.suppress(ProfileFileError):
            profile = open_profile(path)
        if profile is not None:
            use(profile, self._other, folder / "merged.leadline")
        use_by_command(number, path, folder, profile is not None)
        return profile is not None


if __name__ == "__main__":
    sys.exit(main(ProfileFuzzer()))
