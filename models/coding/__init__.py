"""Redundancy schemes, one file each, behind one protocol; start with `protocol`."""

from stripesim.models.coding.amplification import (
    padded_amplification as padded_amplification,
)
from stripesim.models.coding.amplification import stored_bytes as stored_bytes
from stripesim.models.coding.clay import Clay as Clay
from stripesim.models.coding.errors import CodecError as CodecError
from stripesim.models.coding.errors import DataLossError as DataLossError
from stripesim.models.coding.errors import SchemeError as SchemeError
from stripesim.models.coding.geometry import StripeGeometry as StripeGeometry
from stripesim.models.coding.lrc import LRC as LRC
from stripesim.models.coding.lrc import CephLRC as CephLRC
from stripesim.models.coding.parse import parse_scheme as parse_scheme
from stripesim.models.coding.policy import PAGE_BYTES as PAGE_BYTES
from stripesim.models.coding.policy import WHOLE_STRIPES as WHOLE_STRIPES
from stripesim.models.coding.policy import EcPolicy as EcPolicy
from stripesim.models.coding.policy import leaders as leaders
from stripesim.models.coding.protocol import ReadPlan as ReadPlan
from stripesim.models.coding.protocol import RedundancyScheme as RedundancyScheme
from stripesim.models.coding.protocol import RepairPlan as RepairPlan
from stripesim.models.coding.protocol import ShardExtent as ShardExtent
from stripesim.models.coding.protocol import WritePlan as WritePlan
from stripesim.models.coding.reed_solomon import ReedSolomon as ReedSolomon
from stripesim.models.coding.replication import Replication as Replication
