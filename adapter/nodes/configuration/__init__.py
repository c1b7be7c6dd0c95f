"""The strict reader of the scheduling configuration (`--scheduling-config`)."""
