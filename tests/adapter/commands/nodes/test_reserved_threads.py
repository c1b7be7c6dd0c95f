"""Who gets a thread that nobody else can take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.commands.nodes.protection import LARGEST_STRANGERS_BODY_BYTES, SCHEDULER
from adapter.commands.nodes.worker import plan_by_routes
from adapter.foundation.service.server.connections.bodies import Head
from adapter.foundation.web.routes import Route

if TYPE_CHECKING:
    from adapter.foundation.web.http import Request, Response

LARGEST = 64 * 2**20


def _answer(_request: Request) -> Response:
    raise AssertionError("nothing is asked here")


@pytest.mark.parametrize(
    ("path", "chain", "reserved"),
    [
        ("/scheduler/filter", (b"certificate",), LARGEST),
        ("/scheduler/filter", (), LARGEST_STRANGERS_BODY_BYTES),
        ("/other", (b"certificate",), 0),
    ],
)
def test_large_bodies_of_strangers_get_no_reserved_thread(path: str, chain: tuple[bytes, ...], reserved: int) -> None:
    routes = [Route(one, _answer, ("POST",), LARGEST, is_frequent=True) for one in ("/scheduler/filter", "/other")]
    plan = plan_by_routes(routes, reserved_below=SCHEDULER)(Head("POST", path, (), chain))
    assert plan is not None
    assert (plan.largest_bytes, plan.largest_reserved_bytes) == (LARGEST, reserved)
