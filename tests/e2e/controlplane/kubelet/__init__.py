"""A stand-in for the kubelet: runs the adapter's own pods as processes, and says of all others that they run.

It is as strict as the real one where that matters to what is tested (volumes, environment, users, probes, grace
periods), and refuses what it cannot do: a pod whose specification it does not know in full never starts.
"""
