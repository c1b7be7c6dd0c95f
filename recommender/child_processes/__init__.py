"""Runs heavy work in spawned processes that have limits of their own."""
