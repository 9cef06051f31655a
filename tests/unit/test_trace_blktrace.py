"""Binary blktrace: one file, several CPUs, both byte orders, damage, and a comparison with blkparse."""

import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from stripesim.models.problems import TraceError
from stripesim.traces import read_trace

READ, WRITE, FS, NOTIFY, DISCARD = (
    1 << 16,
    2 << 16,
    0x100 << 16,
    0x400 << 16,
    0x2000 << 16,
)
QUEUE, ISSUE, COMPLETE = 1 | 0x10 << 16, 7 | 0x40 << 16, 8 | 0x80 << 16
DEVICE = 259 << 20 | 2


def record(
    time_ns: int,
    sector: int,
    size: int,
    action: int,
    seq: int = 0,
    pdu: bytes = b"",
    order: str = "<",
    cpu: int = 0,
) -> bytes:
    head = (
        0x65617407,
        seq,
        time_ns,
        sector,
        size,
        action,
        77,
        DEVICE,
        cpu,
        0,
        len(pdu),
    )
    return struct.pack(order + "IIQQIIIIIHH", *head) + pdu


def events(count: int, seed: int = 3) -> list[tuple[int, int, int, int]]:
    rng, now, made = random.Random(seed), 10**12, []
    for index in range(count):
        kind = rng.choice([READ, WRITE]) | FS
        sector, size = index * 4096 + 8, rng.choice([8, 16, 64]) * 512
        now += rng.randint(1_000, 200_000)
        dispatched = now + rng.randint(100, 900)
        done = dispatched + rng.randint(10_000, 300_000)
        made += [
            (now, sector, size, QUEUE | kind),
            (dispatched, sector, size, ISSUE | kind),
            (done, sector, size, COMPLETE | kind),
        ]
    return sorted(made)


def per_cpu(folder: Path, count: int = 200, cpus: int = 3) -> Path:
    rng = random.Random(1)
    files = [record(10**12, 0, 0, NOTIFY, pdu=b"fio\0", cpu=cpu) for cpu in range(cpus)]
    numbers = [0] * cpus
    for event in events(count):
        cpu = rng.randrange(cpus)
        numbers[cpu] += 1
        files[cpu] += record(*event, seq=numbers[cpu], cpu=cpu)
    for cpu, data in enumerate(files):
        (folder / f"dev.blktrace.{cpu}").write_bytes(data)
    (folder / f"dev.blktrace.{cpus}").write_bytes(b"")
    return folder / "dev.blktrace.0"


def test_any_cpu_or_the_common_name_reads_them_all(tmp_path: Path) -> None:
    first = per_cpu(tmp_path)
    trace = read_trace(first, strict=True)
    assert len(trace) == 200
    assert trace.counts == {"files merged": 3, "events of other kinds": 3}
    assert trace.requests["complete_ns"].null_count() == 0
    for other in (
        tmp_path / "dev.blktrace.2",
        tmp_path / "dev",
        tmp_path / "dev.blktrace",
    ):
        assert read_trace(other, strict=True).requests.equals(trace.requests)


@pytest.mark.skipif(
    shutil.which("blkparse") is None,
    reason="needs blkparse (Debian's blktrace package)",
)
def test_blkparse_agrees(tmp_path: Path) -> None:
    """The text that blkparse prints of our file, and the file it merges, read to the same requests."""
    ours = read_trace(per_cpu(tmp_path), strict=True)
    done = subprocess.run(
        ["blkparse", "-i", "dev", "-d", "merged.bin"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
        text=True,
    )
    text = tmp_path / "out.txt"
    text.write_text(done.stdout)
    for other in (text, tmp_path / "merged.bin"):
        again = read_trace(other, strict=True)
        assert again.requests.equals(ours.requests)
        assert again.commands is not None and again.commands.equals(ours.commands)


def test_big_endian_machines_files(tmp_path: Path) -> None:
    for name, order in (("little", "<"), ("big", ">")):
        (tmp_path / name).write_bytes(
            b"".join(record(*event, order=order) for event in events(20))
        )
    little, big = (
        read_trace(tmp_path / name, strict=True) for name in ("little", "big")
    )
    assert little.requests.equals(big.requests)


def test_a_split_takes_its_new_sector_from_after_the_header(tmp_path: Path) -> None:
    kind = WRITE | FS
    data = record(1, 8, 8192, QUEUE | kind) + record(
        2, 8, 8192, 13 | kind, pdu=struct.pack(">Q", 16)
    )
    for at, sector in ((3, 8), (4, 16)):
        data += record(at, sector, 4096, ISSUE | kind) + record(
            at + 10, sector, 4096, COMPLETE | kind
        )
    (tmp_path / "t").write_bytes(data)
    trace = read_trace(tmp_path / "t", strict=True)
    assert trace.requests.row(0) == (0, 2, 13, "259,2", 4096, 8192, True)
    assert trace.commands is not None and trace.commands.height == 2


def test_damage_is_reported_with_its_byte(tmp_path: Path) -> None:
    good = [record(*event) for event in events(4)]
    data = good[0] + b"junk in between" + b"".join(good[1:]) + good[0][:20]
    (tmp_path / "t").write_bytes(data)
    trace = read_trace(tmp_path / "t")
    assert len(trace) == 4
    assert trace.faults.lines() == [
        f"{tmp_path}/t:byte 48: got 15 bytes that are not a record, wanted the magic 0x65617407",
        f"{tmp_path}/t:byte {48 * 12 + 15}: got a record cut after 20 bytes, wanted a complete record",
    ]
    with pytest.raises(TraceError):
        read_trace(tmp_path / "t", strict=True)


def test_discards_and_flushes_are_counted(tmp_path: Path) -> None:
    data = b"".join(record(*event) for event in events(1))
    data += record(10**13, 8, 4096, QUEUE | DISCARD | WRITE) + record(
        10**13, 0, 0, QUEUE | 4 << 16 | WRITE
    )
    (tmp_path / "t").write_bytes(data)
    trace = read_trace(tmp_path / "t", strict=True)
    assert len(trace) == 1
    assert trace.counts == {"discards": 1, "flushes": 1}
