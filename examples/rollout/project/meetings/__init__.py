"""Finds the free time of a day between its meetings."""

from meetings.clock import format_span, parse_span
from meetings.intervals import free, merge

__all__ = ["format_span", "free", "merge", "parse_span"]
