"""Real files: protein sequences, sea surface temperatures, a brain image. Tests without their file are skipped."""

import gzip
import os
import re
import subprocess

import numpy as np
import pytest
from netcdf import Header
from reference import Moments, agree


@pytest.fixture(scope="module")
def fasta(real_data):
    return real_data / "ecoli_k12.fasta"


@pytest.fixture(scope="module")
def temperatures(real_data):
    return real_data / "tos_O1_2001-2002.nc"


@pytest.fixture(scope="module")
def image(real_data, tmp_path_factory):
    raw = gzip.decompress((real_data / "mni_t1.nii.gz").read_bytes())
    path = tmp_path_factory.mktemp("image") / "mni_t1.nii"
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize("pattern", ["C..C.{12}H", "[A-Z]{12,}K", "W[^WP]{3}W", "^>.*kinase", "N[^P][ST][^P]", "K$", "^M.*K{4}"])
def test_proteins_that_match(grist, fasta, striped, pattern):
    regex = re.compile(pattern.encode())
    want, at = [], 0
    for line in fasta.read_bytes().split(b"\n"):
        if regex.search(line):
            want.append(b"%d:%s" % (at, line))
        at += len(line) + 1
    assert want
    text = b"".join(row + b"\n" for row in want)
    for path in (fasta, striped(fasta, "100001B", 4)):
        assert grist.ok("run", "grep", path, "--param", f"pattern={pattern}") == text
        assert grist.ask("grep", path, pattern=pattern, count_only="true") == {"count": len(want)}


def test_proteins_counted(grist, fasta, striped):
    done = subprocess.run(
        ["wc", "-lwc", fasta], capture_output=True, env={**os.environ, "LC_ALL": "C"}, check=True
    )
    want = dict(zip(("lines", "words", "bytes"), map(int, done.stdout.split()[:3])))
    data = fasta.read_bytes()
    for path in (fasta, striped(fasta, "64KiB", 5)):
        assert grist.ask("wc", path) == want
        assert grist.ask("count", path) == {"count": len(data.splitlines())}
        assert grist.ask("grep", path, pattern="^>", count_only="true")["count"] == 8272
        assert grist.ask("first", path)["first"] == data.splitlines()[0].decode()


def test_sea_surface_temperature(grist, temperatures, striped):
    data = temperatures.read_bytes()
    header = Header(data)
    _, size, begin = header.variables["tos"]
    assert header.records == 24 and size == 170 * 180 * 4
    months = [
        np.frombuffer(data, ">f4", size // 4, begin + i * header.stride) for i in range(header.records)
    ]
    layout = striped(temperatures, "50000B", 3)
    for path, month in [(temperatures, 0), (layout, 0), (temperatures, 17), (layout, 23)]:
        values = months[month]
        start = begin + month * header.stride
        how = ["--type", "f32", "--big-endian", "--skip", start, "--range", f"{start}:{size}"]
        moments = Moments(values)
        agree(grist.ask("sum", path, *how), {"sum": moments.rounded_sum(), "count": len(values)})
        low, high = int(values.argmin()), int(values.argmax())
        want = {"min": float(values[low]), "min_index": low, "max": float(values[high]), "max_index": high}
        agree(grist.ask("minmax", path, *how), {**want, "count": len(values)})
        assert want["max"] == float(np.float32(1e20))
        sea = np.flatnonzero(values < np.float32(1e19))
        got = grist.ask("lookup", path, *how, where="< 1e19")
        assert [row["index"] for row in got["rows"]] == sea.tolist()
        assert [row["value"] for row in got["rows"]] == values[sea].tolist()
        assert grist.ask("lookup", path, *how, where="250..320", count_only="true") == {"count": len(sea)}
        counts, edges = np.histogram(values[sea].astype("f8"), 20, (270, 310))
        got = grist.ask("histogram", path, *how, bins=20, range="270:310")
        agree(got, {"edges": edges.tolist(), "counts": counts.tolist()})
        # The same month, where indices count from its first element.
        how = ["--type", "f32", "--big-endian", "--skip", begin, "--range", f"{start}:{size}"]
        got = grist.ask("max", path, *how)
        assert got["index"] == (start - begin) // 4 + high


def test_all_months_of_temperature_in_turn(grist, temperatures):
    data = temperatures.read_bytes()
    header = Header(data)
    _, size, begin = header.variables["tos"]
    for i in range(header.records):
        start = begin + i * header.stride
        values = np.frombuffer(data, ">f4", size // 4, start)
        how = ["--type", "f32", "--big-endian", "--skip", begin, "--range", f"{start}:{size}"]
        assert grist.ask("mean", temperatures, *how)["mean"] == Moments(values).mean()


def test_time_axis_as_one_value_a_record(grist, temperatures):
    """The records of all variables follow each other. The time is the first f64 of each."""
    data = temperatures.read_bytes()
    header = Header(data)
    _, _, begin = header.variables["time"]
    assert (len(data) - begin) % header.stride == 0
    times = [np.frombuffer(data, ">f8", 1, begin + i * header.stride)[0] for i in range(24)]
    per_record = header.stride // 8
    how = ["--type", "f64", "--big-endian", "--skip", begin, "--record", header.stride]
    for i in (0, 11, 23):
        window = ["--range", f"{begin + i * header.stride}:1"]
        agree(grist.ask("first", temperatures, *how, *window), {"first": times[i], "index": i * per_record})
    assert grist.ask("count", temperatures, *how) == {"count": 24 * per_record}


def test_image_histogram(grist, image, striped):
    raw = image.read_bytes()
    offset = int(np.frombuffer(raw, "<f4", 1, 108)[0])
    pixels = np.frombuffer(raw, "u1", offset=offset)
    assert len(pixels) == 197 * 233 * 189
    counts = np.bincount(pixels, minlength=256).tolist()
    low, high = int(pixels.argmin()), int(pixels.argmax())
    extremes = {"min": int(pixels[low]), "min_index": low, "max": int(pixels[high]), "max_index": high}
    for path in (image, striped(image, "1MiB", 4)):
        how = ("--type", "u8", "--skip", offset)
        got = grist.ask("histogram", path, *how, bins=256, range="0:256")
        agree(got, {"edges": [float(i) for i in range(257)], "counts": counts})
        numpy_counts, edges = np.histogram(pixels, 256)
        got = grist.ask("histogram", path, *how, bins=256)
        agree(got, {"edges": edges.tolist(), "counts": numpy_counts.tolist()})
        agree(grist.ask("minmax", path, *how), {**extremes, "count": len(pixels)})
        total = int(pixels.sum(dtype="i8"))
        agree(grist.ask("sum", path, *how), {"sum": total, "count": len(pixels)})
        slices = ["--record", 197 * 233, "--range", f"{offset + 90 * 197 * 233}:{197 * 233}"]
        got = grist.ask("sum", path, *how, *slices)
        assert got["sum"] == int(pixels.reshape(189, -1)[90].sum(dtype="i8"))
