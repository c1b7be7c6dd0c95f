"""The custom, external and resource metrics APIs: rules, readings, callers and answers."""
