"""Finding what lives already, and putting functions back where they were taken from."""

from __future__ import annotations

import gc
import threading
from types import ModuleType

import pytest

from leadline.capture.providers.replaced import Replacements, living


class Base:
    pass


class Near(Base):
    pass


class NoHash(type):
    """A metaclass that compares, and so gives its classes no hash."""

    def __eq__(cls, other: object) -> bool:
        raise AssertionError("classes are not compared")

    __hash__ = None  # type: ignore[assignment]


class Odd(Base, metaclass=NoHash):
    pass


def test_living_instances_are_those_of_the_class_and_of_all_below_it() -> None:
    things = [Base(), Near(), Odd(), object()]
    assert {id(one) for one in living(Base)} == {id(one) for one in things[:3]}
    assert gc.isenabled()
    del things[1]
    assert len(living(Base)) == 2


def test_looking_for_instances_leaves_tuples_alone_that_others_are_making() -> None:
    """`tuple(...)` grows a tuple that nobody else may hold meanwhile."""
    ended = threading.Event()
    failed: list[BaseException] = []

    def make() -> None:
        try:
            while not ended.is_set():
                tuple(number for number in range(300))
        except SystemError as error:
            failed.append(error)

    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        living(Base)
    ended.set()
    for thread in threads:
        thread.join()
    assert not failed


def test_functions_are_put_back_wherever_they_are_but_not_over_those_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    owner, user, other = ModuleType("owner"), ModuleType("user"), ModuleType("other")
    for module in (owner, user, other):
        monkeypatch.setitem(sys.modules, f"leadline_probe_{module.__name__}", module)

    def save() -> None: ...
    def load() -> None: ...
    def our_save() -> None: ...
    def our_load() -> None: ...
    def their_save() -> None: ...

    for module in (owner, user, other):
        vars(module).update(save=save, load=load)
    replaced = Replacements()
    replaced.everywhere("save", save, our_save)
    replaced.everywhere("load", load, our_load)
    assert [module.save for module in (owner, user, other)] == [our_save] * 3
    other.save = their_save
    replaced.undo()
    assert [module.save for module in (owner, user, other)] == [save, save, their_save]
    assert [module.load for module in (owner, user, other)] == [load] * 3
