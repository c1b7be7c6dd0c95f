"""Output of commands: lines of a report, and text that is safe for a terminal."""
