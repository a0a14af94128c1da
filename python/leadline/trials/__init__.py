"""Remedies measured on the user's own program; see README.md."""
