"""SCSI operation codes of reads and writes."""

from __future__ import annotations

READS = (0x08, 0x28, 0x88, 0xA8)
"""READ(6), (10), (16), (12)."""

WRITES = (0x0A, 0x2A, 0x8A, 0xAA)
"""WRITE(6), (10), (16), (12)."""
