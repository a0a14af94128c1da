"""One file for each remedy, or for a few that change one thing; found by `leadline.remedies.registry`."""
