"""The constants of `leadline diff` and `leadline gate`, in one place.

`bench/gate_null.py --apply` measures `BETWEEN_RUNS` and `ERRORS` on a machine that does nothing else and writes them
here.
"""

BETWEEN_RUNS = 1.15
"""What steps of one run cannot show: two runs of one program differ by as much on a machine that does nothing else
(placement of memory and threads, clock rates)."""
ERRORS = 3.0
"""Standard errors of the mean that a change must exceed; neighbouring steps are alike, so two would be too few."""
SLOWDOWN = 0.05
"""By which share a step may take longer unless the user says otherwise."""
ENOUGH_RUNS = 4
"""Runs a side from which on rank statistics judge, which need no constant."""
SURE_RATIO = 1.3
"""With few runs per side, and steps that were not measured one by one, a smaller change of time cannot be told from
noise: on a shared machine two runs of one program differ by as much."""
CROWDED = 0.05
"""Of a step in line for a core: with more, steps say how busy the machine was."""
