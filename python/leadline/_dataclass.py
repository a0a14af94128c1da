"""Data classes for what runs before a program's first line.

Each class of the standard library's `dataclasses` is source text that is compiled while a program starts: importing
that module and making the classes of `capture` with it was a quarter of what measuring added to a short command. These
are the same classes with one constructor for all; `dataclasses.fields`, `replace` and `asdict` work with them.
Not for what is made in large numbers: a constructor without generated code takes a microsecond or two.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers see the standard library's
if TYPE_CHECKING:
    from dataclasses import asdict as asdict
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
    from typing import Any, NoReturn
else:

    class field:
        """A default that each object makes for itself."""

        def __init__(self, *, default_factory: Any) -> None:
            self.default_factory = default_factory

    def dataclass(cls: Any = None, /, *, frozen: bool = False) -> Any:
        """As the standard library's, for plain fields: no inheritance between such classes, no further options."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen)
        names = tuple(cls.__annotations__)
        cls._field_names = cls.__match_args__ = names
        cls._defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
        for name, default in cls._defaults.items():
            if isinstance(default, field):
                delattr(cls, name)
        cls.__init__ = _init
        cls.__eq__ = _eq
        cls.__hash__ = _hash if frozen else None
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = _repr
        if frozen:
            cls.__setattr__ = cls.__delattr__ = _refuse
        cls.__dataclass_fields__ = _Fields()
        return cls

    def asdict(one: Any) -> dict[str, Any]:
        """Fields by their names, with objects inside of them taken apart too."""
        return {name: _plain(getattr(one, name)) for name in one._field_names}

    def replace(one: Any, **changes: Any) -> Any:
        """The same object with other values."""
        return type(one)(**{**{name: getattr(one, name) for name in one._field_names}, **changes})

    def _plain(value: Any) -> Any:
        if hasattr(type(value), "_field_names"):
            return asdict(value)
        if isinstance(value, dict):
            return {key: _plain(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)([_plain(item) for item in value])
        return value

    def _init(self: Any, *values: Any, **named: Any) -> None:
        cls = type(self)
        names = cls._field_names
        if len(values) > len(names):
            raise TypeError(f"{cls.__name__} takes {len(names)} values, not {len(values)}")
        found = self.__dict__
        for name, default in cls._defaults.items():
            found[name] = default.default_factory() if isinstance(default, field) else default
        given = dict(zip(names, values))  # noqa: B905  # the names may be more
        for name in named:
            if name not in names or name in given:
                raise TypeError(f"{cls.__name__} got an unexpected or repeated value {name!r}")
        found.update(given, **named)
        if len(found) < len(names):
            missing = ", ".join(name for name in names if name not in found)
            raise TypeError(f"{cls.__name__} needs a value for {missing}")
        if (after := getattr(self, "__post_init__", None)) is not None:
            after()

    def _values(one: Any) -> tuple[Any, ...]:
        return tuple(getattr(one, name) for name in one._field_names)

    def _eq(self: Any, other: object) -> bool:
        return _values(self) == _values(other) if type(self) is type(other) else NotImplemented

    def _hash(self: Any) -> int:
        return hash(_values(self))

    def _repr(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._field_names)
        return f"{type(self).__qualname__}({values})"

    def _refuse(self: Any, name: str, *_: object) -> NoReturn:
        import dataclasses

        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    class _Fields:
        """`__dataclass_fields__`, made for the first who asks."""

        def __get__(self, one: Any, cls: Any) -> dict[str, Any]:
            import dataclasses

            of = cls._defaults
            fields = [
                (name, cls.__annotations__[name])
                if name not in of
                else (
                    name,
                    cls.__annotations__[name],
                    dataclasses.field(default_factory=of[name].default_factory)
                    if isinstance(of[name], field)
                    else dataclasses.field(default=of[name]),
                )
                for name in cls._field_names
            ]
            cls.__dataclass_fields__ = made = dataclasses.make_dataclass(cls.__name__, fields).__dataclass_fields__
            return made
