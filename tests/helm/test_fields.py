"""The check of fields finds what the API server would drop or refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helm.fields import FieldError, check_fields

GOOD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "a", "labels": {"app": "a"}},
    "spec": {"ports": [{"name": "https", "port": 443, "targetPort": "https"}], "selector": {"app": "a"}},
}


def test_a_complete_object_is_accepted() -> None:
    check_fields(GOOD)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"spec": {"port": []}}, r"^Service\.spec: V1ServiceSpec has no port$"),
        ({"spec": {"ports": [{"targetPort": "https"}]}}, r"(?s)^Service\.spec\.ports\[0\]: .*port.* required"),
        ({"spec": {"ports": [{"port": "443"}]}}, r"^Service\.spec\.ports\[0\]\.port: '443' is no int$"),
        ({"spec": {"ports": {"port": 443}}}, r"^Service\.spec\.ports: .* is no list$"),
        ({"spec": {"publishNotReadyAddresses": 1}}, r"publishNotReadyAddresses: 1 is no bool$"),
        ({"metadata": {"labels": {"version": 1.1}}}, r"^Service\.metadata\.labels\.version: 1\.1 is no str$"),
        ({"spec": []}, r"^Service\.spec: \[\] is no V1ServiceSpec$"),
    ],
)
def test_a_field_that_kubernetes_does_not_have_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(FieldError, match=message):
        check_fields(GOOD | change)
