"""The serving certificate: from files, made by the process, or kept in a Secret for all replicas and published."""
