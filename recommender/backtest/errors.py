"""Errors that end a backtest."""

from __future__ import annotations


class BacktestError(Exception):
    """The backtest cannot be made; the message is one line: where, what is wrong, what to do. Exit status 2."""
