"""Reductions of trees as requests to storage nodes."""
