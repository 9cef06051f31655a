"""Errors raised by schemes, plans and codecs, each with a one-line message for the user."""


class SchemeError(ValueError):
    """An invalid scheme, geometry or request. The message states the value and the valid ones."""


class DataLossError(SchemeError):
    """Raised if more shards are missing than the code can rebuild."""


class CodecError(ValueError):
    """Raised if the encode library is missing, or rejects a backend, a shape or a set of fragments."""


def require(holds: bool, place: str, got: object, wanted: str) -> None:
    """Raise `SchemeError` unless a condition holds."""
    if not holds:
        raise SchemeError(f"{place}: got {got}, wanted {wanted}")
