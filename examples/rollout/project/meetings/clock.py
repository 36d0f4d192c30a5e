"""Times of a day as text (`09:30`) and as minutes since midnight."""

MINUTES_OF_A_DAY = 24 * 60


def parse_time(text):
    """Gives the minutes since midnight; `24:00` is the end of the day."""
    hours, colon, minutes = text.partition(":")
    if not (colon and hours.isdigit() and minutes.isdigit() and len(minutes) == 2):
        raise ValueError(f"not a time: {text!r}")
    if int(minutes) > 59 or int(hours) * 60 + int(minutes) > MINUTES_OF_A_DAY:
        raise ValueError(f"no such time: {text!r}")
    return int(hours) * 60 + int(minutes)


def format_time(minutes):
    """Writes minutes since midnight as `09:30`."""
    return f"{minutes // 60:02}:{minutes % 60:02}"


def parse_span(text):
    """Reads `09:30-10:00`; the end comes after the start."""
    start, dash, end = text.partition("-")
    if not dash:
        raise ValueError(f"not a span: {text!r}")
    span = parse_time(start), parse_time(end)
    if span[0] >= span[1]:
        raise ValueError(f"a span ends after it starts: {text!r}")
    return span


def format_span(span):
    """Writes a span as `09:30-10:00`."""
    return f"{format_time(span[0])}-{format_time(span[1])}"
