"""python -m unittest discover bench"""

import argparse
import hashlib
import tempfile
import unittest
from pathlib import Path

import numpy as np

import data
import pairs


class Ratios(unittest.TestCase):
    def test_a_ratio_is_the_median_of_the_rounds_own_ratios(self):
        # The machine is ten times slower in the last round. This does not change the ratios.
        found = pairs.ratio({"a": [2.0, 3.0, 20.0], "b": [1.0, 1.0, 10.0]}, "a", "b", goal=2.5)
        self.assertEqual(found.median, 2.0)
        self.assertEqual((found.low, found.high), (2.0, 3.0))
        self.assertIn("a / b: 2.00 [2.00, 3.00]  goal <= 2.5: reached, the interval crosses it", found.line())

    def test_a_missed_goal_is_called_so(self):
        times = {"a": [3.0] * 5, "b": [1.0] * 5}
        self.assertTrue(pairs.ratio(times, "a", "b", 1.5, "aim").line().endswith("aim <= 1.5: NOT reached"))
        self.assertIn("no goal", pairs.ratio(times, "a", "b").line())

    def test_the_interval_holds_the_true_median_about_as_often_as_it_says(self):
        rng = np.random.default_rng(7)
        held = 0
        for _ in range(100):
            low, high = pairs.interval(rng.standard_normal(15))
            held += low <= 0.0 <= high
        self.assertGreaterEqual(held, 88)
        self.assertLessEqual(held, 100)

    def test_every_side_runs_once_a_round_and_the_first_round_does_not_count(self):
        ran = []
        sides = {name: lambda name=name: ran.append(name) or len(ran) for name in "abc"}
        times = pairs.rounds(sides, 4)
        self.assertEqual([len(times[name]) for name in "abc"], [4, 4, 4])
        for at in range(0, 15, 3):
            self.assertEqual(sorted(ran[at : at + 3]), ["a", "b", "c"])
        self.assertGreater(min(min(seconds) for seconds in times.values()), 3)
        self.assertGreater(len({tuple(ran[at : at + 3]) for at in range(0, 15, 3)}), 1)


class Data(unittest.TestCase):
    def test_a_smaller_array_is_the_beginning_of_a_larger_one(self):
        size = 9 * data.MIB
        for kind in data.ARRAYS:
            small, large = b"".join(data.pieces(kind, size)), b"".join(data.pieces(kind, size + 8))
            self.assertEqual((len(small), len(large)), (size, size + 8))
            self.assertEqual(small, large[:size])

    def test_the_kinds_are_what_they_are_called(self):
        def values(kind):
            return np.frombuffer(b"".join(data.pieces(kind, 8 * data.MIB)), "<f8")

        self.assertAlmostEqual((values("fill") == data.FILL_VALUE).mean(), data.FILL_SHARE, delta=0.01)
        exponents = np.frexp(values("binades"))[1]
        self.assertEqual(len(np.unique(exponents)), 200)
        self.assertTrue((values("lognormal") > 0).all())
        self.assertAlmostEqual(values("normal").std(), 1.0, delta=0.01)

    def test_a_text_has_whole_lines_and_some_have_the_literal(self):
        text = b"".join(data.pieces("text", 2 * data.MIB)).decode()
        self.assertTrue(text.endswith("\n") and len(text) == 2 * data.MIB)
        lines = text.splitlines()
        self.assertTrue(60 < len(text) / len(lines) < 150)
        hits = sum(data.LITERAL in line for line in lines)
        self.assertTrue(0 < hits < len(lines) / 100)

    def test_a_file_is_made_once_and_always_the_same(self):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            path = data.make(one, "text", data.MIB)
            made = path.stat().st_mtime_ns
            self.assertEqual(data.make(one, "text", data.MIB).stat().st_mtime_ns, made)
            digests = [hashlib.sha256(p.read_bytes()).digest() for p in (path, data.make(other, "text", data.MIB))]
            self.assertEqual(digests[0], digests[1])
            self.assertEqual(list(Path(one).glob("*.part")), [])

    def test_sizes_are_read_and_written(self):
        for text, size in (("64MiB", 64 << 20), ("4GiB", 4 << 30), ("8KiB", 8 << 10)):
            self.assertEqual(data.parse_size(text), size)
            self.assertEqual(data.size_name(size), text)
        for text in ("", "1", "GiB", "-1MiB", "1.5GiB"):
            with self.assertRaises(argparse.ArgumentTypeError):
                data.parse_size(text)


if __name__ == "__main__":
    unittest.main()
