"""The `Warning` header, as Kubernetes' clients read it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.metrics.apis.handler import LONGEST_WARNING, MOST_WARNINGS, warning_headers
from adapter.metrics.readings.answers import BySelector, ExternalAnswer, ObjectsAnswer
from adapter.metrics.readings.catalogue.catalogue import Catalogue
from tests.adapter.metrics.apis.fakes import (
    AT,
    AskedExternal,
    AskedObjects,
    FakeReadings,
    Server,
    custom_metric,
    external_metric,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

KUBECTL = "kubectl/v1.36.0 (linux/amd64) kubernetes/abcdef0"
HPA = "kube-controller-manager/v1.36.0 (linux/amd64) kubernetes/abcdef0/system:serviceaccount:kube-system:x"


def read(header: tuple[str, str]) -> str:
    """Return the text of a header; one that is not of Kubernetes' form, or not one line of ASCII, fails the test."""
    name, value = header
    assert name == "Warning"
    found = re.fullmatch(r'299 - "((?:[ !#-\[\]-~]|\\[\\"])*)"', value, re.ASCII)
    assert found, value
    return re.sub(r'\\([\\"])', r"\1", found[1])


@pytest.mark.parametrize(
    ("warning", "text"),
    [
        ("it is old", "it is old"),
        ('a "quoted" \\ text', 'a "quoted" \\ text'),
        ("two\r\nlines\tand\x00more\x7f", "two lines and?more?"),
        ("left out … and — dashed", "left out ... and - dashed"),
        ("größer", "gr??er"),
    ],
)
def test_a_warning_is_one_line_of_printable_ascii(warning: str, text: str) -> None:
    (header,) = warning_headers([warning], KUBECTL)
    assert read(header) == text


@given(st.lists(st.text(max_size=400), max_size=20))
def test_headers_for_any_warnings_are_well_formed_few_and_short(warnings: list[str]) -> None:
    headers = warning_headers(warnings, KUBECTL)
    assert len(headers) <= MOST_WARNINGS
    texts = [read(header) for header in headers]
    assert all(0 < len(text) <= LONGEST_WARNING for text in texts)
    assert len(set(texts)) == len(texts)


def test_excess_warnings_are_counted_and_long_ones_are_cut() -> None:
    texts = [read(header) for header in warning_headers([f"number {number}" for number in range(20)], "")]
    assert texts == [*(f"number {number}" for number in range(7)), "13 further warnings are left out"]
    as_many_as_fit = [f"number {number}" for number in range(MOST_WARNINGS)]
    assert [read(header) for header in warning_headers(as_many_as_fit, "")] == as_many_as_fit
    (long,) = warning_headers(["x" * 300], "")
    assert read(long) == "x" * 237 + "..."


@pytest.mark.parametrize(("agent", "warned"), [(KUBECTL, True), ("", True), (HPA, False), ("my-kube-controller", True)])
def test_all_clients_but_the_hpa_controller_get_warnings(agent: str, *, warned: bool) -> None:
    assert bool(warning_headers(["it is old"], agent)) is warned


@pytest.mark.parametrize("warnings", [(), ("it is old",), ("it is old", "its rule is refused")])
def test_answers_carry_the_warnings_of_the_readings(warnings: Sequence[str]) -> None:
    rps, queue = custom_metric("rps"), external_metric("queue")
    server = Server(FakeReadings(Catalogue([rps, queue])))
    pods = AskedObjects(rps, "shop", BySelector(EVERYTHING), EVERYTHING)
    server.readings.answers[pods] = ObjectsAnswer((("web-0", 1.0),), AT, tuple(warnings))
    server.readings.answers[AskedExternal(queue, "shop", EVERYTHING)] = ExternalAnswer((), AT, tuple(warnings))
    for path in (
        "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/rps",
        "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue",
    ):
        response = server.get(path, ("User-Agent", KUBECTL))
        assert response.status == 200
        assert [read(header) for header in response.headers] == list(warnings)
        assert server.get(path, ("User-Agent", HPA)).headers == ()
