"""Reading profiles: open, tables, tree, queries, merge. NumPy only; neither a framework nor the native module is
needed."""

from __future__ import annotations

from leadline.profile.bottom_up import BottomUp
from leadline.profile.errors import ProfileFileError
from leadline.profile.measures import Measures, Stat
from leadline.profile.profile import Profile
from leadline.profile.reader import open_profile
from leadline.profile.records import Device, Loss, Process, Thread
from leadline.profile.tables import Tables
from leadline.profile.tree import Node, Tree
from leadline.profile.writer import write_profile

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
