"""Trees of slices and operations over variables, and their values."""
