"""Limits of one request: its cells, and the elements along its axes."""

#: Most bytes of the state of one request, as ``array::MAX_STATE_BYTES``.
MAX_STATE = 60 << 20

#: Most bytes of the state of one cell: by operation, and for all other operations.
CELL_BYTES = {"comoments": 450}
MAX_CELL_BYTES = 170

#: Most elements along axes that are cut into windows in one request, as ``array::MAX_LABELS``.
MAX_WINDOWED = 1 << 24

#: Most elements along an axis with a label for each element.
MAX_LABELLED = 1 << 20


def most_cells(op: str) -> int:
    """Returns the number of cells that a request of an operation may have."""
    return MAX_STATE // CELL_BYTES.get(op, MAX_CELL_BYTES)
