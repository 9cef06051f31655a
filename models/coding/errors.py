"""Errors raised by schemes, plans and codecs, each with a one-line message for the user."""

from stripesim.models.problems import Problem, SchemeError


def require(holds: bool, place: str, got: object, wanted: str) -> None:
    """Raise `SchemeError` unless a condition holds."""
    if not holds:
        raise SchemeError(Problem(place=place, got=str(got), wanted=wanted))
