"""The profile in a terminal: `leadline view --tui`. Needs Textual (the extra `tui`)."""
