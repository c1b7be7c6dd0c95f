"""What the leader does after a decision: sizes are written, events sent, and writes ended in time."""
