"""Loaders of data."""
