"""other accelerators."""
