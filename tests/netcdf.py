"""A small reader of the classic netCDF format. It finds where the records of a variable lie."""

import struct

SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8}


class Header:
    def __init__(self, data: bytes):
        assert data[:4] == b"CDF\x01", "not a classic netCDF file"
        self.data, self.at = data, 4
        self.records = self.word()
        self.word()
        self.dims = [(self.name(), self.word()) for _ in range(self.word())]
        self.attributes()
        self.word()
        self.variables = dict(self.variable() for _ in range(self.word()))
        shapes = self.variables.values()
        self.stride = sum(size for dims, size, _ in shapes if dims and self.dims[dims[0]][1] == 0)

    def word(self):
        self.at += 4
        return struct.unpack_from(">I", self.data, self.at - 4)[0]

    def name(self):
        size = self.word()
        self.at += -(-size // 4) * 4
        return self.data[self.at - -(-size // 4) * 4 :][:size].decode()

    def attributes(self):
        self.word()
        for _ in range(self.word()):
            self.name()
            kind, count = self.word(), self.word()
            self.at += -(-count * SIZES[kind] // 4) * 4

    def variable(self):
        name = self.name()
        dims = [self.word() for _ in range(self.word())]
        self.attributes()
        self.word()
        return name, (dims, self.word(), self.word())
