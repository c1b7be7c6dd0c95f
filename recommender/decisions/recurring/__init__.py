"""Recurring times: cron expressions in a time zone, and when they last began."""
