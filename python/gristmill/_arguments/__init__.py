"""Arguments of callers: types of elements, and sizes."""
