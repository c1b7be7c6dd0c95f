"""The file NannyConfiguration, and its precedence over the flags."""

from __future__ import annotations

import pytest

from adapter.foundation.objects.quantities import parse_quantity
from recommender.kinds.proportional.nanny.estimators import GrowingResource
from recommender.kinds.proportional.nanny.nanny_configuration import (
    NannyConfigurationError,
    NannyParameters,
    growing_resources,
    overlaid,
    parse_nanny_configuration,
)

HEAD = "apiVersion: nannyconfig/v1alpha1\nkind: NannyConfiguration\n"
FLAGS = NannyParameters(base_cpu="300m", extra_cpu="20m", base_memory="200Mi", extra_memory="10Mi")


@pytest.mark.parametrize(
    ("lines", "merged"),
    [
        ("", FLAGS),
        ("baseCPU: 1\n", NannyParameters("1", "20m", "200Mi", "10Mi")),
        ("memoryPerNode: 4.5Mi\n", NannyParameters("300m", "20m", "200Mi", "4.5Mi")),
        ('cpuPerNode: "0"\nbaseMemory: MISSING\n', FLAGS),
        ("baseCPU: 100m\ncpuPerNode: 1m\nbaseMemory: 1Gi\n", NannyParameters("100m", "1m", "1Gi", "10Mi")),
    ],
)
def test_the_file_takes_precedence_over_the_flags(lines: str, merged: NannyParameters) -> None:
    assert overlaid(FLAGS, parse_nanny_configuration(HEAD + lines, "f").parameters) == merged


def test_an_unknown_key_is_reported() -> None:
    [note] = parse_nanny_configuration(f"{HEAD}baseCpu: 1\n", "f").ignored
    assert note == "f: the key `baseCpu` has no meaning here: did you mean `baseCPU`?"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "f: it is empty: write `apiVersion: nannyconfig/v1alpha1`"),
        ("kind: NannyConfiguration\n", "`apiVersion` is not nannyconfig/v1alpha1"),
        (HEAD.replace("NannyC", "C"), "f:2: `kind` is not NannyConfiguration"),
        (f"{HEAD}baseCPU: 1x\n", "f: '1x' is not a quantity"),
        (f"{HEAD}cpuPerNode: -1\n", "f: -1 is below 0"),
        (f"{HEAD}baseCPU: [1]\n", "f:3"),
        ("a: b: c", "f:1"),
    ],
)
def test_an_invalid_file_is_refused_with_its_location(text: str, reason: str) -> None:
    with pytest.raises(NannyConfigurationError) as refused:
        parse_nanny_configuration(text, "f")
    assert reason in str(refused.value)


def test_only_resources_with_a_base_are_sized() -> None:
    found = growing_resources(NannyParameters(base_memory="1Gi", extra_cpu="1m", base_storage="MISSING"), "flags")
    assert found == (GrowingResource("memory", parse_quantity("1Gi"), parse_quantity("0")),)
