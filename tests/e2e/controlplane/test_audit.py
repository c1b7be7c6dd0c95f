"""The audit log as tests read it: complete lines, each once, with the caller's pod."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.e2e.controlplane.audit import AuditTail

if TYPE_CHECKING:
    from pathlib import Path


def line(uri: str, **user: Any) -> str:  # noqa: ANN401 - fields of a document
    event = {
        "stage": "ResponseComplete",
        "user": user,
        "verb": "get",
        "requestURI": uri,
        "requestReceivedTimestamp": "2026-11-22T03:00:00.000000Z",
        "stageTimestamp": "2026-11-22T03:00:00.250000Z",
    }
    return json.dumps(event) + "\n"


def test_each_event_is_read_once_and_a_line_that_is_being_written_later(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(line("/before"))
    tail, whole = AuditTail(log), AuditTail(log, from_the_start=True)
    torn = line("/b")
    with log.open("a") as writing:
        writing.write(line("/a") + torn[:40])
        writing.flush()
        assert [event.uri for event in tail.read()] == ["/a"]
        writing.write(torn[40:])
    assert [event.uri for event in tail.read()] == ["/b"]
    assert tail.read() == []
    assert [event.uri for event in whole.read()] == ["/before", "/a", "/b"]


def test_the_pod_of_a_service_account_token_is_known(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    extra = {"authentication.kubernetes.io/pod-name": ["web-0"], "authentication.kubernetes.io/pod-uid": ["u"]}
    log.write_text(line("/a", username="system:serviceaccount:shop:web", extra=extra) + line("/b", username="ann"))
    assert [event.pod for event in AuditTail(log, from_the_start=True).read()] == ["web-0", ""]
