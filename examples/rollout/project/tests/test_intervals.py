import unittest

from meetings.intervals import free, merge


class MergeTest(unittest.TestCase):
    def test_of_nothing_is_nothing(self):
        self.assertEqual(merge([]), [])

    def test_overlapping_intervals_are_joined(self):
        self.assertEqual(merge([(1, 5), (3, 8)]), [(1, 8)])

    def test_an_interval_within_another_adds_nothing(self):
        self.assertEqual(merge([(1, 9), (3, 5)]), [(1, 9)])

    def test_touching_intervals_are_joined(self):
        self.assertEqual(merge([(540, 600), (600, 630), (630, 660)]), [(540, 660)])

    def test_a_gap_of_one_minute_stays(self):
        self.assertEqual(merge([(540, 600), (601, 630)]), [(540, 600), (601, 630)])

    def test_the_order_does_not_matter(self):
        self.assertEqual(merge([(7, 9), (1, 3), (2, 4)]), [(1, 4), (7, 9)])


class FreeTest(unittest.TestCase):
    def test_without_meetings_all_is_free(self):
        self.assertEqual(free((540, 720), []), [(540, 720)])

    def test_gaps_are_between_before_and_after_meetings(self):
        self.assertEqual(free((540, 720), [(570, 600), (630, 660)]), [(540, 570), (600, 630), (660, 720)])

    def test_meetings_outside_the_opening_hours_do_not_count(self):
        self.assertEqual(free((540, 720), [(480, 560), (700, 800), (900, 960)]), [(560, 700)])
