"""Turns the state of the cluster into columns: sums over pods, recent pods, zones, GPUs; and reads the pod to place."""
