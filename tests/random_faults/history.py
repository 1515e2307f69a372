"""The contents that a path may have, according to the answers that its writer got."""


class Path:
    """The possible states of one path: its content, or None where there is no file.

    Each path has only one writer. So there is more than one state only after a command without an answer.
    """

    def __init__(self, name):
        self.name = name
        self.states = {None}
        self.done = []

    def told(self, what, new):
        """The change was acknowledged."""
        self.states = {new}
        self.done.append(f"{what}: done")

    def untold(self, what, new):
        """The change got no answer, so it may or may not be done."""
        self.states = self.states | {new}
        self.done.append(f"{what}: not known")

    def seen(self, state):
        """A client read this state. Returns False if the state is impossible."""
        if state not in self.states:
            return False
        self.states = {state}
        return True

    def told_of(self):
        """The last changes, for a message."""
        states = [None if state is None else len(state) for state in self.states]
        return f"{self.name} may hold {states} bytes; {'; '.join(self.done[-8:])}"
