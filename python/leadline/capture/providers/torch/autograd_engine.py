"""torch's autograd engine in a forked child."""

from __future__ import annotations

from types import ModuleType


def renew_engine(torch: ModuleType) -> None:
    """In the child, before any of its threads runs an operator.

    torch makes the engine anew where it is first asked for there, without a lock of its own, and operators ask for it
    without the GIL. Of two threads that begin at once each would destroy it under the other, and what the first event
    of a thread takes makes them meet: the child crashed. Now nobody else is here, and the GIL is held.

    Not where a device was used before the fork: its engine has threads, one of which may have held a lock. No such
    child can use that device.
    """
    for name in ("cuda", "xpu"):
        if getattr(getattr(torch, name, None), "_is_in_bad_fork", bool)():
            return
    engine = getattr(getattr(torch.autograd, "Variable", None), "_execution_engine", None)
    ask = getattr(engine, "is_checkpoint_valid", None)
    if ask is not None:
        ask()
