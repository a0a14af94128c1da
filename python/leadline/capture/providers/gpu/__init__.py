"""What the providers of GPUs share."""
