"""The runner, the leader, and the memory that outlives both."""
