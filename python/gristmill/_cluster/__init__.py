"""The command ``gristmill``, and storage nodes of this machine."""
