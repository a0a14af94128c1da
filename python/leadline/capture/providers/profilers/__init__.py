"""Windows of other profilers."""
