"""Turns a metric and a request into the text of a query."""
