"""The command line: `main.py` lists the verbs, one file each."""
