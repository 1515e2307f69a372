"""Clusters as a file system of fsspec."""
