"""A stand-in for the kubelet that runs the adapter's pods as processes, and reports all other pods as running.

It is as strict as the real one where that matters to the tests (volumes, environment, users, probes, grace periods),
and refuses what it cannot do: a pod with an unknown part in its specification never starts.
"""
