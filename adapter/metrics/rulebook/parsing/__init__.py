"""Parses rule files, and reports all errors in them."""
