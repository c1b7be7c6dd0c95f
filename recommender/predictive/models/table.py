"""All models by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recommender.predictive.models.headroom import HEADROOM
from recommender.predictive.models.linear import LINEAR
from recommender.predictive.models.polynomial import POLYNOMIAL
from recommender.predictive.models.reactive import REACTIVE

if TYPE_CHECKING:
    from recommender.predictive.forecast import Model

MODELS: tuple[Model, ...] = (REACTIVE, HEADROOM, LINEAR, POLYNOMIAL)


def model_named(name: str) -> Model:
    """Return the model that the configuration spells so; KeyError if there is none."""
    return {model.name: model for model in MODELS}[name]
