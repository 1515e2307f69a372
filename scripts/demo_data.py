"""Makes the files that scripts/demo shows, and finds the arrays inside the real ones."""

import argparse
import gzip
import pathlib
import shutil
import struct

import numpy as np

ARRAY_BYTES = 1 << 30
TEXT_BYTES = 256 << 20
PIECE = 1 << 20


def make(path, total, piece):
    """Writes pieces until the file has its length. A file of that length is kept."""
    if path.exists() and path.stat().st_size == total:
        return
    partial = path.with_suffix(".partial")
    with open(partial, "wb") as out:
        while out.tell() < total:
            out.write(piece()[: total - out.tell()])
    partial.rename(path)


def text_piece(rng):
    words = np.array("start stop read write open close node target stripe timeout retry done".split())
    lines = []
    for _ in range(4000):
        chosen = " ".join(rng.choice(words, rng.integers(3, 12)))
        lines.append(f"2026-01-{rng.integers(1, 29):02d} E{rng.integers(0, 10000):04d}: {chosen}\n")
    return "".join(lines).encode()


class Header:
    """Reads the header of a classic netCDF file as far as the places of its variables."""

    SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8}

    def __init__(self, data):
        self.data, self.at = data, 8
        self.list(lambda: (self.name(), self.number()))
        self.attributes()
        self.begins = dict(self.list(self.variable))

    def number(self):
        self.at += 4
        return struct.unpack_from(">I", self.data, self.at - 4)[0]

    def skip(self, count):
        self.at += (count + 3) // 4 * 4

    def name(self):
        count, start = self.number(), self.at
        self.skip(count)
        return self.data[start : start + count].decode()

    def list(self, item):
        self.number()
        return [item() for _ in range(self.number())]

    def attributes(self):
        def attribute():
            self.name()
            size = self.SIZES[self.number()]
            self.skip(self.number() * size)

        self.list(attribute)

    def variable(self):
        name = self.name()
        for _ in range(self.number()):
            self.number()
        self.attributes()
        self.number(), self.number()
        return name, self.number()


def real(shared, out):
    """Prints shell assignments: where the arrays begin in the real files."""
    header = Header((shared / "tos_O1_2001-2002.nc").read_bytes())
    # The first of 24 months on a grid of 170 x 180 points.
    print(f"tos_skip={header.begins['tos']} tos_bytes={170 * 180 * 4}")
    brain = out / "brain.u8"
    with gzip.open(shared / "mni_t1.nii.gz") as packed, open(brain, "wb") as plain:
        shutil.copyfileobj(packed, plain)
    (voxels,) = struct.unpack_from("<f", brain.read_bytes(), 108)
    print(f"brain_skip={int(voxels)}")


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("dir", type=pathlib.Path)
    args.add_argument("--real", type=pathlib.Path)
    args = args.parse_args()
    if args.real:
        real(args.real, args.dir)
        return
    rng = np.random.default_rng(1)
    make(args.dir / "data.f64", ARRAY_BYTES, lambda: rng.standard_normal(PIECE).tobytes())
    log = [text_piece(rng) for _ in range(4)]
    make(args.dir / "text.log", TEXT_BYTES, lambda: log[rng.integers(len(log))])


if __name__ == "__main__":
    main()
