"""Why the step is slow: the account of one step, the resource that sets its length, and the sentence. Pure."""

from __future__ import annotations

from leadline.verdict.model import CLASSES, Account, Fix, Part, Place, Verdict, as_object

__all__ = ["CLASSES", "Account", "Fix", "Part", "Place", "Verdict", "as_object"]
