from __future__ import annotations

import pytest

from adapter.foundation.objects.names import (
    is_namespace_name,
    is_object_name,
    is_subdomain_name,
    label_key_problem,
    label_value_problem,
)


@pytest.mark.parametrize("name", ["default", "kube-system", "0", "a" * 63])
def test_valid_namespace_names_are_accepted(name: str) -> None:
    assert is_namespace_name(name)


@pytest.mark.parametrize("name", ["", "A", "a.b", "-a", "a-", "a_b", "a" * 64, "a\n", "é", "a/b"])
def test_invalid_namespace_names_are_refused(name: str) -> None:
    assert not is_namespace_name(name)


@pytest.mark.parametrize("name", ["web-0", "system:node-proxier", "a.b.c", "A_B", "...", "a" * 253])
def test_valid_object_names_are_accepted(name: str) -> None:
    assert is_object_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb", "a\nb", "a\0", "a" * 254])
def test_invalid_object_names_are_refused(name: str) -> None:
    assert not is_object_name(name)


@pytest.mark.parametrize(
    ("name", "good"),
    [("web", True), ("web.v2-0", True), ("a" * 253, True), ("a" * 254, False), ("..", False), ("a?b", False)],
)
def test_subdomain_names_are_checked(name: str, *, good: bool) -> None:
    assert is_subdomain_name(name) == good


@pytest.mark.parametrize("key", ["app", "A_b.c-1", "example.com/app", "a/b", "a" * 253 + "/" + "b" * 63])
def test_valid_label_keys_are_accepted(key: str) -> None:
    # 253 letters are one DNS label here, which Kubernetes lets pass as a subdomain.
    assert label_key_problem(key) is None


@pytest.mark.parametrize(
    "key", ["", "-a", "a-", "/a", "a/", "a/b/c", "A/b", "a b", "b" * 64, "a" * 254 + "/b", "app\n"]
)
def test_invalid_label_keys_are_refused(key: str) -> None:
    assert label_key_problem(key)


@pytest.mark.parametrize(
    ("value", "good"), [("", True), ("v1.2_x-y", True), ("a/b", False), ("b" * 64, False), ("-", False)]
)
def test_label_values_are_checked(value: str, *, good: bool) -> None:
    assert (label_value_problem(value) is None) == good
