"""Recurring times: cron expressions, the values that contain them, and the last start (pure)."""
