"""Arrays of dask whose blocks stay where they are stored."""
