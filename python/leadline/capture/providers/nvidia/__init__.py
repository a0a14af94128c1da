"""NVIDIA's GPUs."""
