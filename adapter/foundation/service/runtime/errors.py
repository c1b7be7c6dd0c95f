"""The errors of a process that cannot start."""

from __future__ import annotations


class UsageError(Exception):
    """The command line, the environment, or a file that they name cannot be used. Exit status 2.

    The message is one line that says why and what to do.
    """


class StartError(Exception):
    """The process cannot start, although its input can be used (otherwise: UsageError). Exit status 1.

    The message is one line that says why and what to do, fit for stderr.
    """
