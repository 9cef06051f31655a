"""Convert durations to whole nanoseconds, the time unit of both engines."""


def round_ns(duration_ns: float) -> int:
    """Round a duration to whole nanoseconds, with halves to the even neighbour.

    Every demand passes through this function exactly once, when a template is priced. From then on the
    engines add integers only, which is why they agree to the nanosecond.

    Parameters
    ----------
    duration_ns
        Duration [ns], at least 0 and less than 2**53.

    Raises
    ------
    ValueError
        If the duration is out of range or NaN.

    Examples
    --------
    >>> round_ns(2.5), round_ns(3.5), round_ns(7)
    (2, 4, 7)
    """
    if not 0 <= duration_ns < 2**53:
        raise ValueError(
            f"duration: got {duration_ns} ns, wanted a number from 0 to 2**53"
        )
    return round(duration_ns)
