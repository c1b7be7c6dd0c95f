from __future__ import annotations

import io
import json
import logging
import warnings
from typing import TYPE_CHECKING

import pytest
import urllib3

from adapter.foundation.service.runtime.logs import (
    MOST_CONDITIONS,
    JsonFormatter,
    StateLog,
    TextFormatter,
    configure_logs,
    fields,
    level_of_verbosity,
)
from tests.support.raw_server import Peer, raw_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def record(message: str, *args: object, failure: Exception | None = None, **values: object) -> logging.LogRecord:
    made = logging.LogRecord("adapter.x", logging.WARNING, "x.py", 1, message, args, None)
    made.created = 1795259718.372
    made.__dict__.update(fields(**values))
    if failure:
        made.exc_info = (type(failure), failure, None)
    return made


def test_text_is_one_line_with_the_time_in_utc() -> None:
    line = TextFormatter().format(record("rules from %s", "a.yaml", rules=12, why='a "b" c', none=""))
    assert line == '2026-11-21T11:15:18.372Z WARNING adapter.x rules from a.yaml rules=12 why="a \\"b\\" c" none=""'


def test_untrusted_text_cannot_begin_a_new_line() -> None:
    line = TextFormatter().format(record("asked for %s", "x\n2026 ERROR\r\x1b[2J", path="y\nz"))
    assert len(line.splitlines()) == 1
    assert "\x1b" not in line


@pytest.mark.parametrize("odd", ["\x1b[2J", "\x7f", "\x9b31m", "\u0085", "\u2028", "\u202e", "\ud800"])
def test_untrusted_text_cannot_control_a_terminal(odd: str) -> None:
    """A label of a pod may hold the one-byte form of an escape sequence, or a character that reverses the line."""
    line = TextFormatter().format(record("asked for %s", odd, path=odd, where=f"a {odd}"))
    assert line.isprintable()


def test_json_is_one_object_with_the_fields_in_it() -> None:
    document = json.loads(JsonFormatter().format(record("rules\ntaken", rules=12, level="x", failure=ValueError("no"))))
    assert document["time"] == "2026-11-21T11:15:18.372Z"
    assert (document["level"], document["logger"], document["message"]) == ("warning", "adapter.x", "rules\ntaken")
    assert (document["rules"], document["level_"]) == (12, "x")
    assert "ValueError: no" in document["traceback"]


@pytest.mark.parametrize(("verbosity", "level"), [(0, "info"), (2, "info"), (4, "debug"), (10, "debug")])
def test_klog_verbosity_is_converted_to_a_level(verbosity: int, level: str) -> None:
    assert level_of_verbosity(verbosity) == level


class TestStateLog:
    @pytest.fixture
    def state_log(self, caplog: pytest.LogCaptureFixture) -> StateLog:
        caplog.set_level(logging.INFO)
        return StateLog(logging.getLogger("state"))

    def test_a_condition_and_its_end_are_logged_once_each(
        self, state_log: StateLog, caplog: pytest.LogCaptureFixture
    ) -> None:
        for _ in range(1000):
            state_log.failed("prometheus", "cannot be reached", url="http://a")
        state_log.failed("other", "something else")
        state_log.recovered("prometheus", "can be reached again")
        state_log.recovered("prometheus", "can be reached again")
        assert caplog.messages == ["cannot be reached", "something else", "can be reached again"]
        assert caplog.records[2].__dict__["fields"] == {"failures": 1000}

    def test_a_condition_whose_message_changes_is_logged_again(
        self, state_log: StateLog, caplog: pytest.LogCaptureFixture
    ) -> None:
        for message in ("refused", "refused", "timed out", "refused"):
            state_log.failed("prometheus", message)
        assert caplog.messages == ["refused", "timed out", "refused"]

    def test_conditions_that_never_end_are_forgotten_oldest_first(
        self, state_log: StateLog, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.CRITICAL)
        state_log.failed("first", "cannot be reached")
        for number in range(MOST_CONDITIONS):
            state_log.failed("lasting", "cannot be reached")
            state_log.failed(f"object {number}", "does not exist")
        caplog.set_level(logging.INFO)
        for key in ("first", "object 0", "lasting"):
            state_log.recovered(key, f"{key} is there")
        assert caplog.messages == ["lasting is there"]


class TestConfigureLogs:
    @pytest.fixture(autouse=True)
    def restored(self) -> Iterator[None]:
        names = ("", "gunicorn.error", "urllib3", "urllib3.connection", "kubernetes", "matplotlib")
        before = [(name, logging.getLogger(name).level) for name in names]
        handlers = logging.getLogger().handlers[:]
        # Commands that earlier tests ran in this process have captured them, in a way that ended with those tests.
        logging.captureWarnings(capture=False)
        yield
        logging.getLogger().handlers[:] = handlers
        for name, level in before:
            logging.getLogger(name).setLevel(level)
        logging.captureWarnings(capture=False)

    @pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("text", str)])
    def test_records_of_the_level_and_above_go_to_one_stream(self, form: str, read: Callable[[str], object]) -> None:
        stream = io.StringIO()
        configure_logs(form, "warning", stream)
        logging.getLogger("a.b").warning("seen")
        logging.getLogger("a.b").info("not seen")
        assert "seen" in str(read(stream.getvalue()))
        assert stream.getvalue().count("\n") == 1

    def test_logs_go_to_stderr_by_default(self, capsys: pytest.CaptureFixture[str]) -> None:
        configure_logs()
        logging.getLogger("a").error("there")
        assert "there" in capsys.readouterr().err

    @pytest.mark.parametrize("library", ["gunicorn.error", "urllib3.connectionpool", "matplotlib.font_manager"])
    @pytest.mark.parametrize(("level", "logged"), [("info", False), ("debug", True)])
    def test_what_a_library_tells_of_itself_is_logged_for_debugging_alone(
        self, library: str, level: str, *, logged: bool
    ) -> None:
        stream = io.StringIO()
        configure_logs("text", level, stream)
        logging.getLogger(library).info("generated new fontManager")
        assert ("generated new fontManager" in stream.getvalue()) is logged

    def test_a_warning_of_a_library_is_logged_like_other_lines(self) -> None:
        stream = io.StringIO()
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            configure_logs("json", "info", stream)
            warnings.warn("overflow encountered in add", RuntimeWarning, stacklevel=1)
        document = json.loads(stream.getvalue())
        assert document["level"] == "warning"
        assert "RuntimeWarning: overflow encountered in add" in document["message"]

    @pytest.mark.parametrize("form", ["json", "text"])
    def test_an_answer_that_breaks_off_in_a_header_is_not_a_traceback_for_each_request(self, form: str) -> None:
        def cuts_in_a_header(peer: Peer) -> None:
            peer.read()
            peer.send(b"HTTP/1.1 502 Bad Gateway\r\nContent-Le")

        stream = io.StringIO()
        configure_logs(form, "info", stream)
        with raw_server(cuts_in_a_header) as server, urllib3.PoolManager(retries=False) as pool:
            assert pool.request("GET", server.url).status == 502
        # Whoever sent the request says what became of it.
        assert stream.getvalue() == ""
