"""What turns a forecast into a size (pure)."""
