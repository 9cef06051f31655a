"""Redundancy schemes, one file per family, behind a common protocol. Start with `protocol`."""

from stripesim.models.coding.amplification import (
    padded_amplification,
    repair_reads,
    stored_bytes,
)
from stripesim.models.coding.clay import Clay
from stripesim.models.coding.geometry import StripeGeometry
from stripesim.models.coding.lrc import LRC, CephLRC
from stripesim.models.coding.own_code import OwnCode
from stripesim.models.coding.own_files import (
    class_file,
    load_code_file,
    loaded_code_files,
    note_code_files,
)
from stripesim.models.coding.parse import is_scheme, parse_scheme
from stripesim.models.coding.policy import PAGE_BYTES, WHOLE_STRIPES, EcPolicy, leaders
from stripesim.models.coding.protocol import (
    ReadPlan,
    RedundancyScheme,
    RepairPlan,
    ShardExtent,
    WritePlan,
)
from stripesim.models.coding.reed_solomon import ReedSolomon
from stripesim.models.coding.replication import Replication
from stripesim.models.problems import (
    KernelError,
    OwnCodeError,
    SchemeError,
    UnavailableError,
)

__all__ = [
    "LRC",
    "PAGE_BYTES",
    "WHOLE_STRIPES",
    "CephLRC",
    "Clay",
    "EcPolicy",
    "KernelError",
    "OwnCode",
    "OwnCodeError",
    "ReadPlan",
    "RedundancyScheme",
    "ReedSolomon",
    "RepairPlan",
    "Replication",
    "SchemeError",
    "ShardExtent",
    "StripeGeometry",
    "UnavailableError",
    "WritePlan",
    "class_file",
    "is_scheme",
    "leaders",
    "load_code_file",
    "loaded_code_files",
    "note_code_files",
    "padded_amplification",
    "parse_scheme",
    "repair_reads",
    "stored_bytes",
]
