"""The error of a process that cannot start."""

from __future__ import annotations


class StartError(Exception):
    """The process cannot start; the message is one line that says why and what to do, fit for stderr."""
