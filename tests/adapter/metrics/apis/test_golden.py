"""Each file of `golden` holds a request, its sender, and the answer: every header, and every byte of the body.

A body is written there as JSON to be readable; its bytes are those of the shortest encoding and a newline, or of the
indented encoding if `indent` is set. Text bodies are written as text.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.adapter.foundation.web.wsgi import call, environ
from tests.adapter.metrics.apis.fakes import CHAIN, REFUSED_CHAIN, Server
from tests.adapter.metrics.apis.golden_harness import golden_readings
from tests.adapter.metrics.apis.golden_usage import usage_readings

FOLDER = Path(__file__).parent / "golden"
FILES = sorted(FOLDER.glob("*.json"))
READINGS = {"metrics": golden_readings, "usage": usage_readings}
"""The function that makes the readings, by the `readings` of an exchange; without the key, no resource has a rule."""
CHAINS = {"front proxy": CHAIN, "refused": REFUSED_CHAIN, "nobody": ()}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_answer_is_the_golden_one(file: Path) -> None:
    exchange = json.loads(file.read_text(encoding="utf-8"))
    status, headers, body = answered(exchange["request"], exchange.get("readings", "metrics"))
    wanted = exchange["response"]
    encoded = as_bytes(wanted)
    assert (status, body) == (wanted["status"], encoded)
    length = {} if status == 304 else {"Content-Length": str(wanted.get("length", len(encoded)))}
    assert headers == wanted["headers"] | length


def test_golden_requests_cover_each_client() -> None:
    agents = {
        json.loads(file.read_text(encoding="utf-8"))["request"]["headers"].get("User-Agent", "") for file in FILES
    }
    assert {agent.partition("/")[0] for agent in agents} >= {
        "Go-http-client",
        "curl",
        "kube-apiserver",
        "kube-controller-manager",
        "kubectl",
    }


def answered(request: dict[str, Any], readings: str) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body that the WSGI application gives for a golden request."""
    given = {
        "tidewatch.headers": tuple(request["headers"].items()),
        "tidewatch.peer_chain": CHAINS[request.get("as", "front proxy")],
    }
    status, headers, body = call(
        Server(READINGS[readings]()).application, environ(request["method"], request["target"], **given)
    )
    return int(status[:3]), headers, body


def as_bytes(response: dict[str, Any]) -> bytes:
    """Return the golden body as the bytes that are expected from the server."""
    body = response["body"]
    if body is None or isinstance(body, str):
        return (body or "").encode()
    indent = response.get("indent")
    separators = (",", ": ") if indent else (",", ":")
    return f"{json.dumps(body, indent=indent, separators=separators, ensure_ascii=False)}\n".encode()
