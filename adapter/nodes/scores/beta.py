"""The beta distribution, vectorised: fitted to mean and deviation, and its distribution function.

The distribution function is the regularised incomplete beta function I_x(a, b), by its continued fraction in Lentz's
form (DLMF 8.17.22). For large parameters, where that needs many terms, it is the cube-root approximation to the normal
distribution (Abramowitz and Stegun 26.5.21), which is within 1e-5 there.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from adapter.nodes.model.samples import Floats

_LARGE: Final = 1000.0
_MOST_TERMS: Final = 2000
_RELATIVE_PRECISION: Final = 1e-14
_TINY: Final = 1e-300


def max_variance(mean: Floats) -> Floats:
    """Return the variance that no distribution on 0..1 with this mean exceeds."""
    result: Floats = np.maximum(mean * (1.0 - mean), 0.0)
    return result


def match_moments(mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Return the parameters a and b of the distribution with these moments; NaN where there is none."""
    most = max_variance(mean)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        size = most / variance - 1.0
    size = np.where((variance > 0.0) & (variance < most) & np.isfinite(size), size, np.nan)
    return mean * size, (1.0 - mean) * size


def incomplete_beta(x: Floats, a: Floats, b: Floats) -> Floats:
    """Return I_x(a, b), the probability of at most x: 0 below 0, 1 from 1 on, NaN where a parameter is not positive."""
    is_valid = (a > 0.0) & (b > 0.0)
    result = np.where(is_valid, np.where(x >= 1.0, 1.0, 0.0), np.nan)
    inside = is_valid & (x > 0.0) & (x < 1.0)
    is_large = inside & (np.minimum(a, b) > _LARGE)
    if is_large.any():
        result[is_large] = _by_normal(x[is_large], a[is_large], b[is_large])
        inside &= ~is_large
    if inside.any():
        result[inside] = _by_fraction(x[inside], a[inside], b[inside])
    return result


def _by_normal(x: Floats, a: Floats, b: Floats) -> Floats:
    w1, w2 = np.cbrt(b * x), np.cbrt(a * (1.0 - x))
    score = 3.0 * (w1 * (1.0 - 1.0 / (9.0 * b)) - w2 * (1.0 - 1.0 / (9.0 * a)))
    score /= np.sqrt(w1 * w1 / b + w2 * w2 / a)
    return np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in score.tolist()])


def _by_fraction(x: Floats, a: Floats, b: Floats) -> Floats:
    # The fraction converges fast on this side of the mean; the other is its complement.
    is_swapped = x > (a + 1.0) / (a + b + 2.0)
    y = np.where(is_swapped, 1.0 - x, x)
    c, d = np.where(is_swapped, b, a), np.where(is_swapped, a, b)
    log_beta = _log_gamma(a) + _log_gamma(b) - _log_gamma(a + b)
    front = np.exp(c * np.log(y) + d * np.log1p(-y) - log_beta) / c
    values = np.clip(front * _fraction(y, c, d), 0.0, 1.0)
    result: Floats = np.where(is_swapped, 1.0 - values, values)
    return result


def _log_gamma(values: Floats) -> Floats:
    return np.array([math.lgamma(value) for value in values.tolist()])


def _fraction(x: Floats, a: Floats, b: Floats) -> Floats:
    """Return the continued fraction; elements that have converged are not computed further."""
    result = np.empty_like(x)
    rest = np.arange(len(x))
    numerator = np.ones_like(x)
    denominator = 1.0 / _not_zero(1.0 - (a + b) * x / (a + 1.0))
    value = denominator.copy()
    for m in range(1, _MOST_TERMS):
        n = a + 2.0 * m
        even = m * (b - m) * x / ((n - 1.0) * n)
        odd = -(a + m) * (a + b + m) * x / (n * (n + 1.0))
        denominator = 1.0 / _not_zero(1.0 + even * denominator)
        numerator = _not_zero(1.0 + even / numerator)
        value *= denominator * numerator
        denominator = 1.0 / _not_zero(1.0 + odd * denominator)
        numerator = _not_zero(1.0 + odd / numerator)
        change = denominator * numerator
        value *= change
        is_done = np.abs(change - 1.0) < _RELATIVE_PRECISION
        done = np.count_nonzero(is_done)
        if done == len(rest):
            break
        if 4 * done > len(rest):
            result[rest[is_done]] = value[is_done]
            going = ~is_done
            rest, x, a, b = rest[going], x[going], a[going], b[going]
            numerator, denominator, value = numerator[going], denominator[going], value[going]
    result[rest] = value
    return result


def _not_zero(values: Floats) -> Floats:
    result: Floats = np.where(np.abs(values) < _TINY, _TINY, values)
    return result
