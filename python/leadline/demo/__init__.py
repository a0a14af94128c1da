"""The bundled training program: a small GPT on generated text. Plain PyTorch; nothing here knows of the profiler."""
