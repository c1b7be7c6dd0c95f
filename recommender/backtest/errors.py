"""Errors that end a backtest."""

from __future__ import annotations


class BacktestError(Exception):
    """A backtest cannot run; the message is one line that says where, what is wrong and what to do. Exit status 2."""
