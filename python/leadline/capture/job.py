"""Which processes belong to one job, where nobody of ours has started them.

`LEADLINE=x mpirun ...` and `srun` start many processes at once, each of which finds LEADLINE in its environment. They
share a session when their launcher gives them one job, or, where it names none, when they run on one machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_JOB_VARIABLES: tuple[tuple[str, ...], ...] = (
    ("SLURM_JOB_ID", "SLURM_STEP_ID"),
    ("PMIX_NAMESPACE",),  # Open MPI 4 and later, PRRTE
    ("OMPI_MCA_ess_base_jobid",),  # Open MPI up to 4
    ("PALS_APID",),
    ("FLUX_JOB_ID",),
    ("LSB_JOBID", "LSB_JOBINDEX"),
    ("PBS_JOBID",),
)
"""The first whose first variable is set counts."""


def job_key(environment: Mapping[str, str] = os.environ) -> str:
    """`VARIABLE=value,...` of the job that this process is part of; empty where no launcher says."""
    for names in _JOB_VARIABLES:
        if environment.get(names[0]):
            return ",".join(f"{name}={environment.get(name, '')}" for name in names)
    return ""
