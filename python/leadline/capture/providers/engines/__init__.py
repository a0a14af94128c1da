"""Engines that serve language models: their steps as phases, their batches and requests as numbers."""
