"""``gristmill.Array``: NumPy's functions over trees, and how arrays are shown."""
