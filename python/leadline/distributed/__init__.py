"""Many ranks: from the files of a job to one."""
