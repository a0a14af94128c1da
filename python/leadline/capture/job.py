"""Which processes belong to one job, where nobody of ours has started them.

`LEADLINE=x mpirun ...` and `srun` start many processes at once, each of which finds LEADLINE in its environment. They
share a session when their launcher gives them one job, or, where it names none, when they run on one machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_PLACES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("world_size", ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE")),
    ("local_world_size", ("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE", "OMPI_COMM_WORLD_LOCAL_SIZE")),
    ("node", ("GROUP_RANK", "SLURM_NODEID")),
    ("restart", ("TORCHELASTIC_RESTART_COUNT",)),
)
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


def launch_facts(environment: Mapping[str, str] = os.environ) -> dict[str, str | int]:
    """What a launcher says of the job that this process is one rank of: `job`, a name that its ranks share and other
    jobs do not, `world_size`, `local_world_size`, `node`, `restart`. Only what it says; empty for no rank.

    `torchrun` without a rendezvous id calls every job "none": then address and port of the master tell them apart.
    """
    facts: dict[str, str | int] = {}
    for name, variables in _PLACES:
        for variable in variables:
            if environment.get(variable, "").isdecimal():
                facts[name] = int(environment[variable])
                break
    run = environment.get("TORCHELASTIC_RUN_ID", "")
    master = f"{environment.get('MASTER_ADDR', '')}:{environment.get('MASTER_PORT', '')}"
    name = run if run not in ("", "none") else job_key(environment) or (master if len(master) > 1 else "")
    return {"job": name, **facts} if name and facts else facts


def job_key(environment: Mapping[str, str] = os.environ) -> str:
    """`VARIABLE=value,...` of the job that this process is part of; empty where no launcher says."""
    for names in _JOB_VARIABLES:
        if environment.get(names[0]):
            return ",".join(f"{name}={environment.get(name, '')}" for name in names)
    return ""
