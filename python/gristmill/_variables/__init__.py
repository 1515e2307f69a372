"""Variables of files: their description, their layout, their elements, and the caches of these."""
