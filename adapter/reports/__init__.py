"""What a command prints for people and programs: lines of a report, and text made safe for a terminal."""
