"""Decides which queries are sent, for which requests, when, and how widely: the state behind one lock."""
