"""Profiles in Jupyter: what they show of themselves, and the cell magic."""
