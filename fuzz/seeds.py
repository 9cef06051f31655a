"""Writes a small file of each format for the fuzzer to start from: `python fuzz/seeds.py FOLDER`."""

from __future__ import annotations

import io
import struct
import sys
from pathlib import Path

import polars as pl

from stripesim.traces import EVENT_SCHEMA, FAILURE_FORMATS, FORMATS, REQUEST_SCHEMA

TEXTS = {
    "blkparse": "8,0 1 17 0.000012345 4020 Q R 8 + 8 [java]\n8,0 1 18 0.000013 4020 D R 8 + 8 [java]\n"
    "8,0 1 19 0.000014 0 C R 8 + 8 [0]\n8,0 1 20 0.000015 9 X W 8 / 12 [a]\n",
    "msr": "128166385295514663,hm,0,Write,9056014336,2048,2833\n",
    "fio-iolog": "fio version 3 iolog\n5 f add\n9 f open\n10 f write 4096 512\n25 f read 0 4096\n",
    "spc": "1,20,3584,w,0.5\n",
    "systor": "Timestamp,Response,IOType,LUN,Offset,Size\n1455591804.310701000,,R,3,512,4096\n",
    "tencent": "1538323200,8,16,1,1058\n",
    "alibaba": "419,W,8792731648,16384,1577808000000046\n",
    "cloudphysics": "1,5633898368802,2a,512,8\n",
    "blkreplay": "text\nstart ; sector; length ; op ; replay_delay=0 ; replay_duration=0\n"
    " 0.1 ; 8 ; 64 ; R ; 0.0 ; 0.0\n",
    "disksim": "0.250000 3 8 16 1\n",
    "ssdsim": "938513000 4 8 16 0\n",
    "fta": "1 0 1 5 n1 1 160 900 4022\n2 0 1 5 n1 0 900 1000 NULL\n",
    "columns": "issue_ns,dispatch_ns,complete_ns,device,offset_bytes,length_bytes,is_write\n"
    '0,,9,"8,0",4096,512,true\n',
    "events": 'time_s,component,node,rack,up,reason\n1,c,n,,false,"a, b"\n2,c,n,,true,\n',
    "alibaba-ssd": "model,failure_time,failure,app,disk_id,node_id,rack_id\n"
    "A1,2018-01-02 00:00:30,1,W,7,70,7\n",
    "backblaze": "date,serial_number,model,failure,smart_9_raw\n2023-01-01,S1,M,1,100\n",
    "lanl": "System,nodes,nodenumz,node prod,node decom,Prob Started,Prob Fixed,Facilities,Hardware,"
    "Human Error,Network,Undetermined,Software\n"
    "2,49,0,5-Jun,current,6/21/2005 10:00,6/21/2005 11:00,,CPU,,,,\n",
}
BINARIES = {
    "blktrace": struct.pack(
        "<IIQQIIIIIHH",
        0x65617407,
        1,
        10**12,
        8,
        4096,
        1 | 0x11 << 16,
        7,
        8 << 20,
        0,
        0,
        0,
    ),
    "vscsi": struct.pack("<IIIHHQQ", 1, 4096, 1, 0x2A, 0x100, 8, 1000) * 2,
}


def parquet(rows: list[tuple[object, ...]], schema: dict[str, pl.DataType]) -> bytes:
    """Return a table as Parquet."""
    file = io.BytesIO()
    pl.DataFrame(rows, schema=schema, orient="row").write_parquet(file)
    return file.getvalue()


BINARIES["columns-parquet"] = parquet(
    [(0, None, 9, "8,0", 4096, 512, True)], REQUEST_SCHEMA
)
BINARIES["events-parquet"] = parquet([(1, "c", "n", None, False, "a")], EVENT_SCHEMA)


def main(folder: Path) -> None:
    """Write each format twice: as itself, and to be distinguished."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [
        None,
        *(form.name for form in FORMATS),
        *(form.name for form in FAILURE_FORMATS),
    ]
    for name, data in {
        **{key: text.encode() for key, text in TEXTS.items()},
        **BINARIES,
    }.items():
        (folder / f"{name}-forced").write_bytes(
            bytes([names.index(name.removesuffix("-parquet"))]) + data
        )
        (folder / f"{name}-named").write_bytes(b"\0" + data)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
