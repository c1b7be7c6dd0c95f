"""The beta distribution: the cases of LowRiskOverCommitment, and properties of every distribution function."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.nodes.scores.loads.beta import incomplete_beta, match_moments, max_variance
from tests.adapter.nodes.scores.builder import CASES

BETA: Final[list[dict[str, Any]]] = CASES["lroc_beta"]
PARAMETERS = st.floats(1e-3, 1e7)
INSIDE = st.floats(0.0, 1.0)


def having(key: str) -> pytest.MarkDecorator:
    chosen = [case for case in BETA if key in case]
    return pytest.mark.parametrize("case", chosen, ids=[case["id"] for case in chosen])


def function(x: float, a: float, b: float) -> float:
    return incomplete_beta(np.array([x]), np.array([a]), np.array([b])).item()


@having("cdf_at")
def test_the_distribution_function_has_the_values_of_the_plugin(case: dict[str, Any]) -> None:
    value = function(case["cdf_at"], case["alpha"], case["beta"])
    # Where there is no distribution the plugin says 0; here it is unknown.
    assert value == pytest.approx(case["expected"]) if case["alpha"] > 0 else math.isnan(value)


@pytest.mark.parametrize("case", [c for c in BETA if c["expected"] is None], ids=lambda case: case["id"])
def test_there_is_no_distribution_without_positive_parameters(case: dict[str, Any]) -> None:
    assert math.isnan(function(0.5, case["alpha"], case["beta"]))


@having("pdf_at")
def test_the_density_is_the_slope_of_the_distribution_function(case: dict[str, Any]) -> None:
    step = 1e-5
    high, low = (function(case["pdf_at"] + offset, case["alpha"], case["beta"]) for offset in (step, -step))
    assert (high - low) / (2 * step) == pytest.approx(case["expected"])


@pytest.mark.parametrize("case", [c for c in BETA if isinstance(c["expected"], dict)], ids=lambda case: case["id"])
def test_moments_lead_back_to_their_distribution(case: dict[str, Any]) -> None:
    expected = case["expected"]
    variance = expected["m2"] - expected["m1"] ** 2
    assert variance == pytest.approx(expected.get("var", variance))
    a, b = match_moments(np.array([expected["m1"]]), np.array([variance]))
    assert (a.item(), b.item()) == pytest.approx((case["alpha"], case["beta"]))
    x = np.linspace(0.0, 1.0, 2001)
    below = incomplete_beta(x, np.full_like(x, a.item()), np.full_like(x, b.item()))
    for power in (1, 2, 3):
        moment = 1.0 - np.trapezoid(power * x ** (power - 1) * below, x)
        assert moment == pytest.approx(expected[f"m{power}"], abs=1e-6)


@having("match")
def test_impossible_moments_match_no_distribution(case: dict[str, Any]) -> None:
    mean, second = case["match"]["m1"], case["match"]["m2"]
    a, b = match_moments(np.array([mean]), np.array([second - mean * mean]))
    found = bool(np.isfinite(a).all() and np.isfinite(b).all())
    assert found == bool(case["expected"])


@having("maxvar_mean")
def test_the_largest_variance_is_that_of_two_points(case: dict[str, Any]) -> None:
    assert max_variance(np.array([float(case["maxvar_mean"])])).item() == pytest.approx(case["expected"])


@given(INSIDE, st.integers(1, 40), st.integers(1, 40))
def test_integer_parameters_give_the_tail_of_a_binomial_distribution(x: float, a: int, b: int) -> None:
    trials = a + b - 1
    tail = sum(math.comb(trials, k) * x**k * (1 - x) ** (trials - k) for k in range(a, trials + 1))
    assert function(x, a, b) == pytest.approx(tail, abs=2e-7)


@pytest.mark.parametrize("a", [1, 7, 40])
@pytest.mark.parametrize("b", [700, 100_000])
def test_the_load_of_an_idle_node_has_the_tail_of_a_binomial_distribution(a: int, b: int) -> None:
    """Its small mean and deviation make one parameter small and the other large."""
    trials = a + b - 1
    for x in (0.5 * a / trials, a / trials, 2.0 * a / trials):
        below = sum(math.comb(trials, k) * x**k * (1 - x) ** (trials - k) for k in range(a))
        assert function(x, a, b) == pytest.approx(1.0 - below, abs=2e-7)
        assert function(1.0 - x, b, a) == pytest.approx(below, abs=2e-7)


@given(INSIDE, PARAMETERS, PARAMETERS)
def test_the_distribution_function_is_a_probability_and_symmetric(x: float, a: float, b: float) -> None:
    value = function(x, a, b)
    assert 0.0 <= value <= 1.0
    complement = 1.0 - x
    if 1.0 - complement == x:
        assert value == pytest.approx(1.0 - function(complement, b, a), abs=1e-6)


@given(INSIDE, INSIDE, PARAMETERS, PARAMETERS)
def test_the_distribution_function_is_monotonic(x: float, y: float, a: float, b: float) -> None:
    low, high = sorted((x, y))
    assert function(low, a, b) <= function(high, a, b) + 1e-6


@pytest.mark.parametrize(("a", "b"), [(100.0, 100.0), (100.0, 5e6), (1e6, 100.0)])
def test_the_approximation_for_large_parameters_is_continuous_with_the_fraction(a: float, b: float) -> None:
    mean = a / (a + b)
    deviation = math.sqrt(mean * (1 - mean) / (a + b))
    for offset in (-2, -0.5, 0, 1, 3):
        x = mean + offset * deviation
        assert function(x, a, b) == pytest.approx(function(x, a * (1 + 1e-9), b * (1 + 1e-9)), abs=8e-5)


def test_a_vector_gives_the_same_results_as_its_single_elements() -> None:
    random = np.random.default_rng(7)
    a, b = (10 ** random.uniform(-2, 5, 300) for _ in range(2))
    x = random.uniform(0, 1, 300)
    alone = [function(*values) for values in zip(x.tolist(), a.tolist(), b.tolist(), strict=True)]
    assert incomplete_beta(x, a, b).tolist() == pytest.approx(alone, abs=1e-9)
