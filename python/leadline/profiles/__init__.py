"""Reading profiles: open, tables, tree, queries, merge. NumPy only; neither a framework nor the native module is
needed."""

from __future__ import annotations

from leadline.profiles.bottom_up import BottomUp
from leadline.profiles.errors import ProfileFileError
from leadline.profiles.measures import Measures, Stat
from leadline.profiles.profile import Profile
from leadline.profiles.reader import open_profile
from leadline.profiles.records import Device, Loss, Process, Thread
from leadline.profiles.tables import Tables
from leadline.profiles.tree import Node, Tree
from leadline.profiles.writer import write_profile

__all__ = [
    "BottomUp",
    "Device",
    "Loss",
    "Measures",
    "Node",
    "Process",
    "Profile",
    "ProfileFileError",
    "Stat",
    "Tables",
    "Thread",
    "Tree",
    "open_profile",
    "write_profile",
]
