"""``gristmill.run``: kernels over files, and their answers."""
