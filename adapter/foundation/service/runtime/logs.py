"""Logs as lines for people (text) or programs (JSON), with values in fields instead of in sentences.

    log.info("rules are in force", extra=fields(file=path, rules=12))

Times are RFC 3339 in UTC. A condition that repeats with every refresh is logged when it begins and when it ends
(`StateLog`): a Prometheus that is down for an hour causes two lines, not a thousand.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from adapter.foundation.reports.terminal_escaping import printable
from adapter.foundation.service.runtime.log_writer import QueuedHandler

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")


def fields(**values: object) -> dict[str, object]:
    """Return the `extra` of a log call that carries these fields."""
    return {"fields": values}


def configure_logs(
    form: str = "text", level: str = "info", stream: TextIO | None = None, *, queued: bool = False
) -> None:
    """Send this process's logs to the stream (default: stderr) in one of FORMATS, from one of LEVELS upwards.

    With `queued`, no thread that logs waits for the stream, which must be a file (`log_writer`).
    """
    to = stream or sys.stderr
    handler = QueuedHandler(to) if queued else logging.StreamHandler(to)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    # A warning of a library would else be two lines of bare text on stderr, which no reader of JSON lines understands.
    logging.captureWarnings(capture=True)
    # Messages of the server, the HTTP client and the plots are only useful for debugging.
    for name in ("gunicorn.error", "urllib3", "kubernetes", "matplotlib"):
        logging.getLogger(name).setLevel(logging.DEBUG if level == "debug" else logging.WARNING)
    # Its warning about an answer that breaks off in a header has a traceback, and repeats with each request. The client
    # that sent the request reports the failure, as a condition that begins and ends.
    logging.getLogger("urllib3.connection").setLevel(logging.DEBUG if level == "debug" else logging.ERROR)


def level_of_verbosity(verbosity: int) -> str:
    """Return the level for klog's `--v`: Kubernetes components log debug messages from 4 on."""
    return "debug" if verbosity >= 4 else "info"


class TextFormatter(logging.Formatter):
    """Formats records as `TIME LEVEL LOGGER message key=value`: one line each, followed by the traceback if any."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text."""
        parts = [_time(record), f"{record.levelname:<7}", record.name, printable(record.getMessage())]
        parts += [f"{key}={_text_value(value)}" for key, value in _fields(record).items()]
        line = " ".join(parts)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """Formats each record as a JSON object with time, level, logger, message, fields, and the traceback if any."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON."""
        document: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        document |= {key if key not in document else f"{key}_": value for key, value in _fields(record).items()}
        if record.exc_info:
            document["traceback"] = self.formatException(record.exc_info)
        return json.dumps(document, default=str)


MOST_CONDITIONS: Final = 20_000
"""Limit of remembered conditions per log: objects that are gone, or whose names are made up, never recover."""


MOST_REASONS: Final = 10
"""The largest number of reasons that are logged for a condition until it ends or its facts change."""
_NUMBER: Final = re.compile(r"[0-9][0-9.]*")


def without_numbers(text: str) -> str:
    """Return a text without its numbers. Texts that differ in nothing else state the same reason."""
    return _NUMBER.sub("", text)


@dataclass(slots=True)
class _Condition:
    logged: str = ""
    """The message that was logged last."""
    times: int = 0
    """How often it occurred."""
    reasons: set[int] = field(default_factory=set)
    """The hashes of the reasons that were logged, without numbers."""


class StateLog:
    """Logs a condition when it begins, when its message changes, and when it ends. For any number of threads."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._failing: dict[str, _Condition] = {}
        """The condition of each key, ordered by last occurrence."""

    def failed(self, key: str, message: str, *, level: int = logging.ERROR, **values: object) -> None:
        """Log the message unless it was the last one logged for the key."""
        with self._lock:
            condition = self._occurred(key)
            is_new, condition.logged = message != condition.logged, message
        if is_new:
            self._log.log(level, "%s", message, extra=fields(**values))

    def failed_because(
        self, key: str, message: str, reason: str, *, level: int = logging.ERROR, **values: object
    ) -> None:
        """Log the message once for each reason since the key's condition began, and for ten reasons at most."""
        words = hash(without_numbers(reason))
        with self._lock:
            reasons = self._occurred(key).reasons
            is_new = words not in reasons and len(reasons) < MOST_REASONS
            if is_new:
                reasons.add(words)
        if is_new:
            self._log.log(level, "%s", message, extra=fields(**values))

    def _occurred(self, key: str) -> _Condition:
        """Return the condition of a key, which has occurred once more. Only for holders of the lock."""
        condition = self._failing[key] = self._failing.pop(key, _Condition())
        condition.times += 1
        if len(self._failing) > MOST_CONDITIONS:
            del self._failing[next(iter(self._failing))]
        return condition

    def recovered(self, key: str, message: str, **values: object) -> None:
        """Log that the key's condition has ended; do nothing if it never began."""
        with self._lock:
            condition = self._failing.pop(key, None)
        if condition is not None:
            self._log.info("%s", message, extra=fields(failures=condition.times, **values))


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    return getattr(record, "fields", {})


def _text_value(value: object) -> str:
    text = str(value)
    is_plain = text.isprintable() and not any(char in ' "=' for char in text)
    return text if text and is_plain else printable(json.dumps(text))
