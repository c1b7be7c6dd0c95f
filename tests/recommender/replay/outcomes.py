"""Results of policies in a form that can be compared."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from recommender.replay.policy_outcome import PolicyOutcome


def values_of(one: PolicyOutcome) -> list[object]:
    """Return all values of a result, its name first."""
    found = (getattr(one, field.name) for field in fields(one))
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in found]
