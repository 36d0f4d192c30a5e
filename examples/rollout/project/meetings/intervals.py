"""Arithmetic on half-open intervals of minutes, written (start, end)."""


def merge(intervals):
    """Joins intervals that overlap or touch; gives them sorted by their start."""
    merged = []
    for start, end in sorted(intervals):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def free(opening, busy):
    """Gives the parts of the opening hours that no interval covers."""
    gaps = []
    position, closing = opening
    for start, end in merge(busy):
        if start > position:
            gaps.append((position, min(start, closing)))
        position = max(position, end)
        if position >= closing:
            return gaps
    gaps.append((position, closing))
    return gaps
