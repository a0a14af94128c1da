"""Classes of operators and kernels by their names: the one table of it, which knows no profile."""
