"""Data classes whose code is made when it is needed.

Each class of the standard library's `dataclasses` is source text that is compiled while a program starts: importing
that module and making our classes with it was a quarter of what measuring added to a short command, and a fifth of a
report. These are the same classes with one constructor for all; a class of which many objects are made gets its own.
`dataclasses.fields`, `replace` and `asdict` work with them.
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
    from operator import attrgetter

    _SHARED_UNTIL = 64
    """So many objects of a class are made by the constructor that all share."""
    _NOTHING = object()

    class field:
        """A default that each object makes for itself, or a value that `repr` leaves out."""

        def __init__(self, *, default: Any = _NOTHING, default_factory: Any = None, repr: bool = True) -> None:
            self.default = default
            self.default_factory = default_factory
            self.repr = repr

    def dataclass(cls: Any = None, /, *, frozen: bool = False) -> Any:
        """As the standard library's, for plain fields: no inheritance between such classes, no further options."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen)
        names = tuple(cls.__annotations__)
        defaults: dict[str, Any] = {}
        cls._field_names = cls.__match_args__ = cls._fields_shown = names
        cls._field_defaults = defaults
        for name in names:
            if name not in cls.__dict__:
                continue
            value = cls.__dict__[name]
            if isinstance(value, field):
                if not value.repr:
                    cls._fields_shown = tuple(one for one in cls._fields_shown if one != name)
                delattr(cls, name)
                if value.default is not _NOTHING:
                    value = value.default
                    setattr(cls, name, value)
                elif value.default_factory is None:
                    continue
            defaults[name] = value
        cls._objects_made = [0]
        cls.__init__ = _init
        if len(names) == 1:
            only = attrgetter(names[0])
            cls._field_values = staticmethod(lambda one: (only(one),))
        else:
            cls._field_values = attrgetter(*names) if names else staticmethod(lambda one: ())
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
        return {name: _plain(getattr(one, name)) for name in _names(one)}

    def replace(one: Any, **changes: Any) -> Any:
        """The same object with other values."""
        return type(one)(**{**{name: getattr(one, name) for name in _names(one)}, **changes})

    def _names(one: Any) -> Any:
        """Of the fields, also where the class is the standard library's."""
        cls = type(one)
        return cls._field_names if hasattr(cls, "_field_names") else cls.__dataclass_fields__

    def _plain(value: Any) -> Any:
        if hasattr(type(value), "_field_names") or hasattr(type(value), "__dataclass_fields__"):
            return asdict(value)
        if isinstance(value, dict):
            return {key: _plain(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            items = [_plain(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        return value

    def _init(self: Any, *values: Any, **named: Any) -> None:
        """The constructor that all share."""
        cls = type(self)
        made = cls._objects_made
        made[0] += 1
        if made[0] > _SHARED_UNTIL:
            cls.__init__ = _own_init(cls)
            cls.__init__(self, *values, **named)
            return
        names = cls._field_names
        if len(values) > len(names):
            raise TypeError(f"{cls.__name__} takes {len(names)} values, not {len(values)}")
        found = self.__dict__
        for name, default in cls._field_defaults.items():
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

    def _own_init(cls: Any) -> Any:
        """A constructor for one class, in code of its own."""
        scope: dict[str, Any] = {"_leadline_absent": _NOTHING}
        parameters, lines = ["_leadline_self", "/"], ["_leadline_found = _leadline_self.__dict__"]
        for place, name in enumerate(cls._field_names):
            default = cls._field_defaults.get(name, _NOTHING)
            value = name
            if isinstance(default, field):
                scope[f"_leadline_{place}"] = default.default_factory
                parameters.append(f"{name}=_leadline_absent")
                value = f"_leadline_{place}() if {name} is _leadline_absent else {name}"
            elif default is not _NOTHING:
                scope[f"_leadline_{place}"] = default
                parameters.append(f"{name}=_leadline_{place}")
            else:
                parameters.append(name)
            lines.append(f"_leadline_found[{name!r}] = {value}")
        if hasattr(cls, "__post_init__"):
            lines.append("_leadline_self.__post_init__()")
        exec("\n ".join([f"def __init__({', '.join(parameters)}):", *lines]), scope)
        made = scope["__init__"]
        made.__qualname__ = f"{cls.__qualname__}.__init__"
        return made

    def _eq(self: Any, other: object) -> bool:
        cls = type(self)
        return cls._field_values(self) == cls._field_values(other) if cls is type(other) else NotImplemented

    def _hash(self: Any) -> int:
        return hash(type(self)._field_values(self))

    def _repr(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._fields_shown)
        return f"{type(self).__qualname__}({values})"

    def _refuse(self: Any, name: str, *_: object) -> NoReturn:
        import dataclasses

        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    class _Fields:
        """`__dataclass_fields__`, made for the first who asks."""

        def __get__(self, one: Any, cls: Any) -> dict[str, Any]:
            import dataclasses

            of = cls._field_defaults
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
