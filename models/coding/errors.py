"""Errors of schemes, plans and codecs: one line each, for the user to read."""


class SchemeError(ValueError):
    """A scheme, geometry or request that is impossible: the text says what was got and wanted."""


class DataLossError(SchemeError):
    """More shards are gone than the code can rebuild."""


class CodecError(ValueError):
    """The encode library is absent, or refuses a backend, a shape or a set of fragments."""


def require(holds: bool, place: str, got: object, wanted: str) -> None:
    """Raise `SchemeError` unless a condition holds."""
    if not holds:
        raise SchemeError(f"{place}: got {got}, wanted {wanted}")
