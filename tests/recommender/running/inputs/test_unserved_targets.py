"""Targets whose kind the cluster serves in other API versions than the target names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.objects.resources import Resource
from adapter.foundation.sources.kubernetes.errors import error_of_answer
from adapter.foundation.time.clock import Clock
from recommender.decisions.record import TargetReference
from recommender.running.inputs.target_lookups import TargetLookups

if TYPE_CHECKING:
    from adapter.foundation.sources.kubernetes.writing import Reply

FLEETS = Resource("odd.example.com", "v1", "fleets", "fleet", "Fleet", True)  # noqa: FBT003
FLEET = TargetReference("odd.example.com/v1beta1", "Fleet", "shop", "f1")
PATH = "/apis/odd.example.com/v1beta1/namespaces/shop/fleets/f1"


class Answers:
    """An API server that answers each request with 404 and this body."""

    def __init__(self, body: str) -> None:
        self.body = body

    def get(self, path: str, *, seconds: float) -> Reply:
        assert seconds > 0
        raise error_of_answer(f"GET {path}", 404, self.body.encode())


def status(message: str) -> str:
    return json.dumps({"kind": "Status", "reason": "NotFound", "message": message})


UNSERVED = "the server could not find the requested resource"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (status('fleets.odd.example.com "f1" not found'), Observed(None, 1000.0)),
        ("404 page not found\n", Unknown(f"GET {PATH}: 404: 404 page not found: check apiVersion")),
        (status(UNSERVED), Unknown(f"GET {PATH}: 404 NotFound: {UNSERVED}: check apiVersion")),
    ],
)
def test_a_target_in_a_version_that_is_not_served_is_not_absent(body: str, expected: Observed[None] | Unknown) -> None:
    lookups = TargetLookups(Answers(body), lambda _group, _name: FLEETS, clock=Clock(lambda: 0.0, lambda: 1000.0))
    assert lookups.look([FLEET])[FLEET] == expected
