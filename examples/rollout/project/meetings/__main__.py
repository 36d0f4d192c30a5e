"""Prints the free spans of a day, one a line."""

import sys

from meetings import format_span, free, parse_span


def main(arguments):
    if not arguments:
        sys.exit("usage: python3 -m meetings OPENING [MEETING..]")
    opening, *busy = [parse_span(text) for text in arguments]
    for gap in free(opening, busy):
        print(format_span(gap))


if __name__ == "__main__":
    main(sys.argv[1:])
