"""Errors raised by schemes, plans and codecs, each with a one-line message for the user."""

from stripesim.models.problems import SchemeError


def require(holds: bool, place: str, got: object, wanted: str) -> None:
    """Raise `SchemeError` unless a condition holds."""
    if not holds:
        raise SchemeError(f"{place}: got {got}, wanted {wanted}")
