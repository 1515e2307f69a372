"""Datasets of xarray: opening, the engine, the accessor, loading and storing."""
