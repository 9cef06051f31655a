"""The clock's unit: whole nanoseconds, rounded once, by this one function."""


def round_ns(duration_ns: float) -> int:
    """Round a duration to whole nanoseconds, halves to the even neighbour.

    Every demand passes here exactly once, when a template is priced. After that the
    engines add integers only, which is why two engines can agree to the nanosecond.

    >>> round_ns(2.5), round_ns(3.5), round_ns(7)
    (2, 4, 7)
    """
    if not 0 <= duration_ns < 2**53:
        raise ValueError(
            f"duration: got {duration_ns} ns, wanted a number from 0 to 2**53"
        )
    return round(duration_ns)
