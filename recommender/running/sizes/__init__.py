"""Decisions of cluster sizes: from the inputs of a poll to a record, in a thread of their own."""
