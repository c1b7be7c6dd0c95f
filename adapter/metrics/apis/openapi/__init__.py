"""Schemas of the answers of the three groups, as kube-apiserver requests them."""
