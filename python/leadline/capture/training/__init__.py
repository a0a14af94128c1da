"""Profiling from inside a training loop: what to record, when, and where it goes."""
