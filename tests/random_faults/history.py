"""What a path may hold, as far as whoever wrote there was told."""


class Path:
    """The states that one path may be in: contents, or None where there is no file.

    One writer uses it, so only what ended without an answer leaves more than one state.
    """

    def __init__(self, name):
        self.name = name
        self.states = {None}
        self.done = []

    def told(self, what, new):
        """It was acknowledged."""
        self.states = {new}
        self.done.append(f"{what}: done")

    def untold(self, what, new):
        """Nobody knows whether it was done."""
        self.states = self.states | {new}
        self.done.append(f"{what}: not known")

    def seen(self, state):
        """Somebody read it. False if it cannot be so."""
        if state not in self.states:
            return False
        self.states = {state}
        return True

    def told_of(self):
        """Its last changes, for a message."""
        states = [None if state is None else len(state) for state in self.states]
        return f"{self.name} may hold {states} bytes; {'; '.join(self.done[-8:])}"
