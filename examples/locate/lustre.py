#!/usr/bin/env python3
"""Tells Gristmill on which hosts the files of a Lustre file system lie, for `gristmill up --locate` or `serve --locate`.

Lustre keeps the stripes of a file on object storage targets (OSTs). A storage host serves some of them. The file HOSTS says
which, with one line for each OST: its index (`lfs osts`) and the host, as the node there has it in `--advertise`:

    0 oss0
    1 oss0
    2 oss1

The node starts its program without arguments, so give it a script of your own:

    #!/bin/sh
    exec python3 /usr/share/gristmill/locate/lustre.py /etc/gristmill/osts

It answers each line with a file, such as {"path": "/lustre/x.nc", "length": 10}, with a line such as
{"components": [{"unit": 1048576, "hosts": ["oss0", "oss1"]}]}. The layout is in the attribute `lustre.lov`; its structures
(`lov_user_md_v1`, `lov_user_md_v3`, `lov_comp_md_v1`) are those of `lustre_user.h`.
"""

import json
import os
import struct
import sys

ATTRIBUTE = "lustre.lov"
PLAIN, WITH_POOL, COMPOSITE = 0x0BD10BD0, 0x0BD30BD0, 0x0BD60BD0
RAID0, MASK = 0x001, 0xFFFF
# Flags of a component: its bytes are those of an older state, or its objects are made.
STALE, MADE = 0x1, 0x10
END = 2**64 - 1
UNKNOWN = ""


def stripes(layout: bytes, host_of) -> dict:
    """The stripe unit and the hosts of the stripes of a plain layout. The hosts of stripes on a metadata target are not known."""
    magic, pattern, unit, count = struct.unpack_from("<II16xIH", layout)
    header = {PLAIN: 32, WITH_POOL: 48}[magic]
    if pattern & MASK & ~0x200 != RAID0 or count == 0xFFFF or len(layout) < header + 24 * count:
        return {"unit": max(unit, 1 << 16), "hosts": [UNKNOWN]}
    indices = [struct.unpack_from("<I", layout, header + 24 * stripe + 20)[0] for stripe in range(count)]
    return {"unit": unit, "hosts": [host_of.get(index, UNKNOWN) for index in indices] or [UNKNOWN]}


def components(layout: bytes, host_of) -> list[dict]:
    """The components of a layout. Of a file with mirrors, those of the first one whose bytes are up to date."""
    (magic,) = struct.unpack_from("<I", layout)
    if magic != COMPOSITE:
        return [stripes(layout, host_of)]
    (count,) = struct.unpack_from("<H", layout, 14)
    mirrors = {}
    for number in range(count):
        entry = struct.unpack_from("<IIQQII", layout, 32 + 48 * number)
        mirrors.setdefault(entry[0] >> 16 & 0x7FFF, []).append(entry)
    mirror = next(entries for entries in mirrors.values() if not any(entry[1] & STALE for entry in entries))
    found = []
    for _, flags, _, end, offset, size in sorted(mirror, key=lambda entry: entry[2]):
        part = layout[offset : offset + size]
        one = stripes(part, host_of) if flags & MADE else {"unit": 1 << 20, "hosts": [UNKNOWN]}
        found.append(one if end == END else {"end": end, **one})
    return found


def located(question: dict, host_of) -> dict:
    """The answer to a question. It is empty if the file is not on Lustre, or cannot be read."""
    try:
        return {"components": components(os.getxattr(question["path"], ATTRIBUTE), host_of)}
    except (OSError, ValueError, KeyError, StopIteration, struct.error):
        return {}


def read_hosts(lines) -> dict[int, str]:
    """The hosts of OSTs by their indices."""
    words = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return {int(index): host for index, host in words}


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: lustre.py HOSTS")
    with open(sys.argv[1]) as file:
        host_of = read_hosts(file)
    for line in sys.stdin:
        print(json.dumps(located(json.loads(line), host_of)), flush=True)


if __name__ == "__main__":
    main()
