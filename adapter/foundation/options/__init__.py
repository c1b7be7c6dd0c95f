"""Flags that several programs share, and the clients and settings that are made from them."""
