"""The replayed cluster: its nodes and pods as columns, the scheduler that places them, and the recorded events."""
