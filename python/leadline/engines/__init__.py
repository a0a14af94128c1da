"""Engines that serve language models, as a profile holds them: steps, batches, requests. Pure."""

from __future__ import annotations

from leadline.engines.model import Engine, SlowRequest, engines_of, together

__all__ = ["Engine", "SlowRequest", "engines_of", "together"]
