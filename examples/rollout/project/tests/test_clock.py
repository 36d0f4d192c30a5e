import unittest

from meetings.clock import format_span, parse_span, parse_time


class ClockTest(unittest.TestCase):
    def test_times_are_minutes_since_midnight(self):
        for text, minutes in [("00:00", 0), ("9:05", 545), ("09:05", 545), ("23:59", 1439), ("24:00", 1440)]:
            self.assertEqual(parse_time(text), minutes, text)

    def test_what_is_no_time_is_refused(self):
        for text in ["", "9", "9:5", "09:60", "24:01", "-1:00", "a:bc"]:
            with self.assertRaises(ValueError, msg=text):
                parse_time(text)

    def test_a_span_is_written_as_it_is_read(self):
        self.assertEqual(format_span(parse_span("09:30-10:00")), "09:30-10:00")

    def test_a_span_ends_after_it_starts(self):
        for text in ["10:00-10:00", "10:00-09:00", "10:00"]:
            with self.assertRaises(ValueError, msg=text):
                parse_span(text)
