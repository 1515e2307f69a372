"""python -m unittest discover bench"""

import math
import tempfile
import unittest
from fractions import Fraction
from pathlib import Path

import netCDF4
import numpy as np

import field_numpy
import fields
from field_numpy import ALL, WAYS, Asked

SMALL = 16 * fields.CELLS * 4


def stored(path):
    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        return file[fields.VARIABLE][:]


class Fields(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_a_shorter_file_is_the_beginning_of_a_longer_one(self):
        short = stored(fields.make(self.folder, "classic", SMALL))
        long = stored(fields.make(self.folder, "classic", SMALL * 5 // 2))
        self.assertEqual((len(short), len(long)), (16, 40))
        np.testing.assert_array_equal(short, long[:16])

    def test_a_third_is_missing_and_deflate_leaves_a_half_to_a_third(self):
        path = fields.make(self.folder, "deflate", SMALL)
        self.assertTrue(0.3 < (stored(path) == fields.FILL).mean() < 0.35)
        self.assertTrue(1 / 3 < path.stat().st_size / SMALL < 1 / 2)

    def test_what_is_said_to_be_true_is(self):
        y, x = np.argwhere(~fields.land())[1000]
        for layout in ("classic", "packed"):
            path = fields.make(self.folder, layout, SMALL)
            truths = field_numpy.truths(path, fields.VARIABLE, ALL)
            with netCDF4.Dataset(path) as file:
                values = file[fields.VARIABLE][:]
            here = values.compressed().astype(float)
            exact = {"sum": math.fsum(here), "mean": math.fsum(here) / here.size}
            cell = [Fraction(x) for x in values[:, y, x].compressed().astype(float).tolist()]
            mean = sum(cell) / len(cell)
            variance = sum((x - mean) ** 2 for x in cell) / len(cell)
            of_cell = {"mean": float(mean), "max": float(max(cell)), "std": math.sqrt(variance)}
            for asked in ALL:
                found, right = truths[asked], (of_cell if asked.times_only else exact)[asked.op]
                one = found[y, x] if asked.times_only else found[()]
                self.assertLessEqual(field_numpy.ulps(one, found.dtype.type(right)), 1, (layout, asked))
                for way in WAYS.values():
                    theirs = field_numpy.answer(path, fields.VARIABLE, way, asked)
                    self.assertTrue(field_numpy.near(theirs, found, 16), (layout, asked))

    def test_ulps(self):
        one = np.float32(1)
        self.assertEqual(field_numpy.ulps(one, np.nextafter(one, np.float32(2))), 1)
        self.assertEqual(field_numpy.ulps(np.float64(-0.0), np.float64(0.0)), 0)
        self.assertEqual(field_numpy.ulps(np.float64(-5e-324), np.float64(5e-324)), 2)
        self.assertEqual(field_numpy.ulps(np.array([1, np.nan]), np.array([1, np.nan])), 0)
        self.assertEqual(field_numpy.ulps(np.array([1, np.nan]), np.array([1, 2.0])), math.inf)
        self.assertEqual(field_numpy.ulps(np.float32(1), np.float64(1)), math.inf)

    def test_an_answer_that_is_off_is_not_near(self):
        self.assertEqual(Asked("max", False).name, "max of all")
        self.assertTrue(field_numpy.near(np.float64(1 + 1e-6), np.float32(1), 16))
        self.assertFalse(field_numpy.near(np.float64(1 + 1e-5), np.float32(1), 16))
        self.assertFalse(field_numpy.near(np.float64("nan"), np.float32(1), 16))


if __name__ == "__main__":
    unittest.main()
