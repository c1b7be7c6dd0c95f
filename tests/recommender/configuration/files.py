"""Configuration files for tests: the smallest valid file, with other keys inserted."""

from __future__ import annotations

import pytest

from recommender.configuration.reading import ConfigurationFileError, read_configuration

HEAD = "apiVersion: tidewatch.io/v1alpha1\nkind: RecommenderConfiguration\n"
LINEAR = "proportional: {linear: {nodesPerReplica: 16}}"
TARGET = "{apiVersion: apps/v1, kind: Deployment, namespace: kube-system, name: coredns}"


def entry(name: str, *lines: str, kind: str = LINEAR) -> str:
    return "\n  ".join([f"- name: {name}", *([kind] if kind else []), *lines]) + "\n"


def whole(*entries: str, top: str = "") -> str:
    """Return a whole file; its entries begin at line 4, or later by the number of lines in `top`."""
    return f"{HEAD}{top}recommendations:{' []' if not entries else ''}\n{''.join(entries)}"


def refusal(content: str) -> list[str]:
    """Return the problems for which the whole file is refused."""
    with pytest.raises(ConfigurationFileError) as caught:
        read_configuration(content, "r.yaml")
    return [str(problem) for problem in caught.value.problems]


def problems_of(content: str) -> list[str]:
    """Return the problems of the entries that are refused."""
    return [str(problem) for refused in read_configuration(content, "r.yaml").refused for problem in refused.problems]
