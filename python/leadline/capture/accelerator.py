"""An accelerator that a file describes: its TOML checked, and written as the native side reads it.

The file names a library, its functions, and of each the types of its arguments and what they mean (their roles). How to
write one: docs/how-to/accelerator.md. Everything that is wrong with a file is one sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from leadline.capture.errors import ProfileError

HEAD = "accelerator\t"
"""What a checked description begins with; anything else is the name of a file."""
KINDS = ("launch", "copy", "set", "synchronize", "allocate", "free", "complete", "other")
WORK = ("launch", "copy", "set")
INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
FLOATS = ("f32", "f64")
TYPES = (*INTEGERS, *FLOATS, "pointer", "text")
DIRECTIONS = ("HtoD", "DtoH", "DtoD", "HtoH", "PtoP")
CLOCKS = ("own", "monotonic", "realtime")
ROLES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "name": (("text",), ("launch", "other")),
    "kernel": (("pointer", *INTEGERS), ("launch", "other")),
    "bytes": (INTEGERS, ("launch", "copy", "set", "allocate", "free", "other")),
    "stream": (("pointer", *INTEGERS), (*WORK, "synchronize", "other")),
    "device": (INTEGERS, (*WORK, "synchronize", "allocate", "free", "other")),
    "id": (("pointer", *INTEGERS), (*WORK, "synchronize", "complete")),
    "completion": (("pointer",), WORK),
    "address": (("pointer", *INTEGERS), ("allocate", "free")),
    "begin": ((*INTEGERS, *FLOATS), ("complete",)),
    "end": ((*INTEGERS, *FLOATS), ("complete",)),
    "duration": ((*INTEGERS, *FLOATS), ("complete",)),
    "direction": (INTEGERS, ("copy",)),
}
"""Role: the types that can have it, the kinds of functions that it means something in."""
_ANSWERS = ("id", "kernel", "address")
"""Roles that a function may answer with: its result, or what it writes where a pointer leads."""
MOST_FUNCTIONS = 128
_TOP_KEYS = ("name", "library", "clock", "tick_ns", "function")
_FUNCTION_KEYS = ("name", "kind", "arguments", "returns", "success", "blocking", "direction", "bytes_each")


def describe(path: str | Path) -> str:
    """What a TOML file says, as the native side reads it; raises ProfileError with one sentence."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ProfileError(f"Cannot read the accelerator {file}: {reason}.") from None
    try:
        content = _load_toml(text)
    except ValueError as error:
        raise ProfileError(f"Cannot read the accelerator {file}: it is not TOML ({error}).") from None
    try:
        return "\n".join(_lines(content)) + "\n"
    except _WrongError as error:
        raise ProfileError(f"The accelerator {file} cannot be used: {error}.") from None


def names(descriptions: Sequence[str]) -> list[str]:
    """What the accelerators of checked descriptions are called."""
    heads = [text.split("\n", 1)[0] for text in descriptions]
    return [head.split("\t")[1] for head in heads]


class _WrongError(Exception):
    """What is wrong, as the rest of a sentence."""


def _load_toml(text: str) -> dict[str, Any]:
    try:
        import tomllib
    except ImportError:  # before Python 3.11
        try:
            import tomli as tomllib  # type: ignore[no-redef,import-not-found,unused-ignore]
        except ImportError:
            raise ProfileError("Reading a TOML file needs Python 3.11 or the package tomli.") from None
    return tomllib.loads(text)


def _lines(content: Mapping[str, Any]) -> Iterator[str]:
    _known_keys(content, _TOP_KEYS, "the file")
    name = _text(content, "name", "the file", required=True)
    clock = _one_of(_text(content, "clock", "the file") or CLOCKS[0], CLOCKS, "clock")
    tick = content.get("tick_ns", 1)
    if isinstance(tick, bool) or not isinstance(tick, int | float) or not 0 < tick < 1e12:
        raise _WrongError(f"tick_ns is how many nanoseconds the device's clock counts as one, not {tick!r}")
    libraries = content.get("library")
    libraries = [libraries] if isinstance(libraries, str) else libraries
    if not isinstance(libraries, list) or not libraries or not all(isinstance(one, str) and one for one in libraries):
        raise _WrongError('it must say which library it is about, such as library = "libnpu.so"')
    yield f"{HEAD}{_word(name)}\t{clock}\t{float(tick)!r}"
    for library in libraries:
        yield f"library\t{_word(library)}"
    functions = content.get("function")
    if not isinstance(functions, list) or not functions or not all(isinstance(one, dict) for one in functions):
        raise _WrongError("it must have at least one [[function]]")
    if len(functions) > MOST_FUNCTIONS:
        raise _WrongError(f"it has {len(functions)} functions, and at most {MOST_FUNCTIONS} can be followed")
    seen: set[str] = set()
    for function in functions:
        yield from _function(function, seen)


def _function(function: Mapping[str, Any], seen: set[str]) -> Iterator[str]:
    name = _text(function, "name", "a [[function]]", required=True)
    if name in seen:
        raise _WrongError(f"it describes the function {name} twice")
    seen.add(name)
    _known_keys(function, _FUNCTION_KEYS, f"the function {name}")
    kind = _one_of(_text(function, "kind", f"the function {name}", required=True), KINDS, f"the kind of {name}")
    arguments = function.get("arguments", [])
    if not isinstance(arguments, list) or not all(isinstance(one, str) for one in arguments):
        raise _WrongError(f'the arguments of {name} must be a list of texts such as "u64 bytes"')
    blocking = function.get("blocking", False)
    if not isinstance(blocking, bool):
        raise _WrongError(f"blocking of {name} is true or false, not {blocking!r}")
    if blocking and kind not in WORK:
        raise _WrongError(f"{name} is no {', '.join(WORK)}, so blocking has no meaning there")
    direction = _direction(function.get("direction"), kind, name)
    each = function.get("bytes_each", 1)
    if isinstance(each, bool) or not isinstance(each, int) or not 0 < each < 2**31:
        raise _WrongError(f"bytes_each of {name} is a number of bytes, not {each!r}")
    more = bool(arguments) and arguments[-1] == "..."
    pairs = [_argument(one, kind, name, returned=False) for one in (arguments[:-1] if more else arguments)]
    returns = _argument(function.get("returns", "void"), kind, name, returned=True)
    success = _success(function.get("success"), returns[0], name)
    _check_roles([*pairs, returns], kind, blocking, name)
    if (":" in direction) != any(role == "direction" for _, role in pairs):
        raise _WrongError(f"{name} needs both: an argument that is its direction, and what its values mean")
    yield f"function\t{_word(name)}\t{kind}\t{int(blocking)}\t{success}\t{direction}\t{each}"
    for type_, role in pairs:
        yield f"argument\t{type_}\t{role}"
    if more:
        yield "argument\t...\t-"
    yield f"returns\t{returns[0]}\t{returns[1]}"


def _direction(given: object, kind: str, name: str) -> str:
    """One word, or what each value of an argument means, as `1:HtoD,2:DtoH`; `-` for none."""
    if kind != "copy":
        if given is not None:
            raise _WrongError(f"{name} is no copy, so it has no direction")
        return "-"
    if isinstance(given, str):
        return _one_of(given, DIRECTIONS, f"the direction of {name}")
    if not isinstance(given, dict) or not given:
        raise _WrongError(f'the copy {name} needs a direction: one of {", ".join(DIRECTIONS)}, or {{ 1 = "HtoD" }}')
    pairs = []
    for value, word in given.items():
        if not value.lstrip("-").isdecimal() or not isinstance(word, str):
            raise _WrongError(f'directions of {name} are written as {{ 1 = "HtoD" }}, not {value!r} = {word!r}')
        pairs.append(f"{int(value)}:{_one_of(word, DIRECTIONS, f'a direction of {name}')}")
    return ",".join(pairs)


def _argument(text: object, kind: str, function: str, *, returned: bool) -> tuple[str, str]:
    """`TYPE` or `TYPE ROLE`."""
    what = f"what {function} returns" if returned else f"an argument of {function}"
    words = text.split() if isinstance(text, str) else []
    if not 1 <= len(words) <= 2:
        raise _WrongError(f'{what} is written as "TYPE" or "TYPE ROLE", not {text!r}')
    points = words[0].endswith("*")
    type_ = _one_of(words[0].rstrip("*") if points else words[0], (*TYPES, "void") if returned else TYPES, what)
    if words[0].count("*") > 1 or (points and (type_ == "text" or returned)):
        raise _WrongError(f"{what} is {words[0]}; a pointer to another is written as pointer*")
    if len(words) == 1:
        return words[0], "-"
    role = _one_of(words[1], tuple(ROLES), f"the role of {what}")
    types, kinds = ROLES[role]
    if type_ not in types:
        raise _WrongError(f"{what} is {words[0]} and cannot be its {role}, which is {_or(types)}")
    if kind not in kinds:
        raise _WrongError(f"{function} is of kind {kind}, where {role} has no meaning; it belongs to {_or(kinds)}")
    if returned and role not in _ANSWERS:
        raise _WrongError(f"{function} cannot return its {role}; results are {_or(_ANSWERS)}")
    if points and role in ("completion", "name"):
        raise _WrongError(f"{what} is a pointer to its {role}, which must be passed itself")
    return words[0], role


def _check_roles(pairs: Sequence[tuple[str, str]], kind: str, blocking: bool, name: str) -> None:
    roles = [role for _, role in pairs if role != "-"]
    for role in set(roles) - {"bytes"}:
        if roles.count(role) > 1:
            raise _WrongError(f"{name} has {roles.count(role)} arguments that are its {role}")
    if kind == "complete" and "id" not in roles:
        raise _WrongError(f"{name} reports the end of work, so one of its arguments must be the id of that work")
    if ("begin" in roles) != ("end" in roles):
        raise _WrongError(f"{name} has one of begin and end; times need both, or duration")
    if blocking and ("id" in roles or "completion" in roles):
        raise _WrongError(f"{name} is blocking, so its work has ended when it returns and needs no id or completion")
    if "id" in roles and "completion" in roles:
        raise _WrongError(f"{name} has an id and a completion; only one of them can report the end of its work")
    if kind in ("allocate", "free") and "address" not in roles:
        raise _WrongError(f"{name} is of kind {kind}, so something must be the address, such as pointer* address")


def _success(success: object, returned: str, name: str) -> str:
    if success is None:
        return "always"
    if returned == "void":
        raise _WrongError(f"{name} returns nothing, so its success is unknown; say what it returns")
    if success == 0 and not isinstance(success, bool):
        return "zero"
    if success == "nonzero":
        return "nonzero"
    raise _WrongError(f'success of {name} is what it returns on success, 0 or "nonzero", not {success!r}')


def _known_keys(content: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in content:
        if key not in known:
            raise _WrongError(f"{where} has an unknown key {key!r}{_nearest(key, known)}")


def _text(content: Mapping[str, Any], key: str, where: str, *, required: bool = False) -> str:
    value = content.get(key)
    if value is None and not required:
        return ""
    if not isinstance(value, str) or not value.strip():
        raise _WrongError(f"{where} has no {key}" if value is None else f"{key} of {where} is a text, not {value!r}")
    return value


def _one_of(word: str, known: Sequence[str], what: str) -> str:
    if word in known:
        return word
    raise _WrongError(f"{what} is {word!r}, which is none of {', '.join(known)}{_nearest(word, known)}")


def _nearest(word: str, known: Sequence[str]) -> str:
    import difflib  # for the one sentence

    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; the nearest is {near[0]!r}" if near and near[0] != word else ""


def _or(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _word(text: str) -> str:
    """Without what separates words and lines."""
    return " ".join(text.split())
