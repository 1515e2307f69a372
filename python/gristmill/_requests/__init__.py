"""Requests to storage nodes: names and connections, options, traces, progress, and giving up."""
