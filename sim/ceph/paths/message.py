"""Large messages pass their stages in pieces, so that sending, carrying and receiving overlap."""

from itertools import pairwise
from typing import NamedTuple

from stripesim.models.nic import NicModel

# A message of two pieces of this size or more is cut, into at most as many as the second number.
PIECE_BYTES = 128 << 10
PIECES_MAX = 8
_LABEL = ", piece "


class Piece(NamedTuple):
    """A part of a message that passes its stages at once."""

    size_bytes: int
    label: str  #: End of the labels of its steps, empty for the only piece
    completes: int  #: Messages that are complete with this piece, 0 or 1


class Message(NamedTuple):
    """A message, in pieces that follow one another."""

    name: str
    shard: int
    pieces: tuple[Piece, ...]

    @property
    def size_bytes(self) -> int:
        """Size of all pieces [B]."""
        return sum(piece.size_bytes for piece in self.pieces)


def cut_message(nic: NicModel, size_bytes: int, name: str, shard: int) -> Message:
    """Cut a message into pieces of whole frames, which have as many frames as the message."""
    count = max(1, min(PIECES_MAX, size_bytes // PIECE_BYTES))
    if count == 1:
        return Message(name, shard, (Piece(size_bytes, "", 1),))
    frames = nic.frames(size_bytes)
    cuts_bytes = [
        frames * number // count * nic.frame_payload_bytes for number in range(count)
    ]
    pieces = [
        Piece(end - start, f"{_LABEL}{number} of {count}", number // count)
        for number, (start, end) in enumerate(pairwise([*cuts_bytes, size_bytes]), 1)
    ]
    return Message(name, shard, tuple(pieces))


def split_label(label: str) -> tuple[str, int]:
    """Return the label that all pieces of a message share, and their number, 1 for a step of its own.

    >>> split_label("request sent, piece 3 of 8"), split_label("kv sync")
    (('request sent', 8), ('kv sync', 1))
    """
    label, _, number = label.partition(_LABEL)
    return label, int(number.rpartition(" ")[2] or 1)
