"""Parameter sets: every number says where it is from, and a wrong set is reported in one line."""

import inspect
import tomllib
from importlib.resources import files

import numpy as np
import pytest

from stripesim.calibration.parameters import sets as parameter_sets
from stripesim.calibration.parameters.sets import ParameterSet, lognormal_factors, names
from stripesim.models.cpu import ClientModel, CpuModel
from stripesim.models.drive import DriveCapacity, DriveEndurance, FillLimits
from stripesim.models.generations import recovery_model
from stripesim.models.hdd import HddModel, HddWithLogModel
from stripesim.models.messages import MessageModel
from stripesim.models.nic import NicModel
from stripesim.models.object_store.gateway import GatewayModel
from stripesim.models.object_store.store import ObjectStoreModel
from stripesim.models.problems import ParameterSetError
from stripesim.models.provenance import KINDS, unit_of
from stripesim.models.ssd import FACTOR_POINTS, SsdModel
from stripesim.models.threads import ThreadModel
from stripesim.scenarios.answers.run.execute import parameters_of
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.schema.loader import shipped_scenarios
from stripesim.scenarios.schema.scenario import load_scenario, parse_scenario
from support.messages import states

# The model of each table of a parameter set, with additions of the scenario.
TABLES = {
    "client": (ClientModel, {}),
    "cpu": (CpuModel, {"cores_per_host": 1}),
    "public_nic": (NicModel, {"rate_bits_per_s": 1.0}),
    "private_nic": (NicModel, {"rate_bits_per_s": 1.0}),
    "messages": (MessageModel, {}),
    "threads": (ThreadModel, {"op_shards_count": 8, "op_threads_per_shard_count": 2}),
    "ssd": (SsdModel, {}),
    "hdd": (HddModel, {}),
    "hdd_with_log": (HddWithLogModel, {}),
    "store": (ObjectStoreModel, {}),
    "gateway": (GatewayModel, {}),
    "capacity": (DriveCapacity, {}),
    "endurance": (DriveEndurance, {}),
    "fill": (FillLimits, {}),
}
# Models of which a set states some numbers alone.
PARTS = {"recovery": recovery_model()}
# A table without a model: the origin of the set.
RANGE = "calibrated"
# Numbers without a unit in their names: plain counts.
COUNTS = {"channels", "raid0_drives", "cores_per_host"}

CLIENT = """
[client.submit_threads_count]
value = 1
provenance = "code"
source = "one thread"

[client.submit_ns]
value = 45000
provenance = "fitted"
source = "some rows"
confidence_interval = [40000.0, 50000.0]

[client.submit_write_ns]
value = 0
provenance = "assumed"
source = "left out"

[client.submit_ns_per_byte]
value = 0
provenance = "assumed"
source = "left out"

[client.processor_ns]
value = 0
provenance = "assumed"
source = "left out"
"""


def tables_of(name):
    text = (files("stripesim.calibration.parameters") / f"{name}.toml").read_text(
        "utf-8"
    )
    return {
        table: numbers
        for table, numbers in tomllib.loads(text).items()
        if table != RANGE
    }


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write parameter sets into a separate folder."""
    monkeypatch.setattr(parameter_sets, "files", lambda _package: tmp_path)

    def write(text, name="mine.toml"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return ParameterSet("mine") if name == "mine.toml" else None

    return write


@pytest.mark.parametrize("name", names())
def test_every_table_that_ships_builds_its_model(name):
    chosen = ParameterSet(name)
    for table in tables_of(name):
        if table in PARTS:
            model = chosen.replaced(PARTS[table], table)
        else:
            kind, given = TABLES[table]
            # The queues of operations are the release's where the set leaves them out.
            given = {
                key: value
                for key, value in given.items()
                if key not in chosen.table(table)
            }
            model = chosen.model(kind, table, given)
        for row in model.parameters():
            assert row["provenance"] in KINDS
            assert len(row["source"]) > 10


@pytest.mark.parametrize("name", names())
def test_every_number_that_ships_has_its_unit_in_its_name(name):
    for table, numbers in tables_of(name).items():
        for key in numbers:
            named = key.endswith(
                ("_count", "_fraction", "_factor", "_quantiles", "_ratio")
            )
            assert unit_of(key) != "1" or named or key in COUNTS, (
                f"{name}: [{table}] {key}"
            )


@pytest.mark.parametrize("name", shipped_scenarios())
def test_a_scenario_lists_every_number_of_its_models_with_provenance(name):
    models = build_models(load_scenario(name))
    rows = parameters_of(models)
    listed = {row["name"] for row in rows}
    parts = models.described()
    assert {
        "client",
        "cpu",
        "public_nic",
        "private_nic",
        "messages",
        "pg_lock",
        "ssd",
        "store",
    } <= parts.keys()
    for part, model in parts.items():
        for number in model.number_names():
            if not number.endswith("_quantiles"):
                assert f"{part}.{number}" in listed
    assert all(
        row["provenance"] in KINDS and row["source"] and row["unit"] for row in rows
    )
    by_name = {row["name"]: row for row in rows}
    assert by_name["cpu.cores_per_host"]["provenance"] == "given"
    assert by_name["private_nic.rate_bits_per_s"]["unit"] == "bit/s"


def test_no_model_has_a_default_for_a_number():
    # A default would be a number without provenance.
    for kind, _ in TABLES.values():
        for parameter in inspect.signature(kind).parameters.values():
            assert parameter.default is inspect.Parameter.empty, (
                f"{kind.__name__}.{parameter.name}"
            )


def test_numbers_keep_value_provenance_and_interval(written):
    model = written(CLIENT).model(ClientModel, "client")
    assert (model.submit_threads_count, model.submit_ns) == (1, 45000)
    assert model.provenance["submit_ns"].kind == "fitted"
    assert model.provenance["submit_ns"].confidence_interval == (40000, 50000)
    assert model.provenance["submit_threads_count"].confidence_interval is None


def test_values_of_the_scenario_take_precedence_and_are_marked(written):
    model = written(CLIENT).model(ClientModel, "client", {"submit_ns": 7.0})
    assert model.submit_ns == 7
    assert model.provenance["submit_ns"].kind == "given"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "mine.toml: [client]: got nothing, wanted a table"),
        ("[client\n", "mine.toml: Expected"),
        (
            CLIENT.replace("submit_ns]", "submit_us]"),
            "mine.toml: [client]: submit_ns: got nothing, wanted a number ... "
            "mine.toml: [client]: submit_us: got an unknown key, wanted one of submit_ns",
        ),
        (
            CLIENT.replace('"code"', '"guessed"'),
            "submit_threads_count: provenance: got kind 'guessed'",
        ),
        (
            CLIENT.replace('"some rows"', '""'),
            "submit_ns: provenance: ... source",
        ),
        (
            CLIENT.replace('source = "some rows"', ""),
            "[client]: submit_ns: source: got nothing, wanted text",
        ),
        (
            CLIENT.replace('source = "some rows"', "").replace(
                'provenance = "fitted"', ""
            ),
            "[client]: submit_ns: provenance: got nothing ... source: got nothing",
        ),
        (
            CLIENT.replace("value = 45000", ""),
            "submit_ns: got provenance, source, confidence_interval",
        ),
        (
            CLIENT.replace("value = 45000", "value = 45000\nunit = 's'"),
            "submit_ns: unit: got an unknown key, wanted one of value, file",
        ),
        (
            CLIENT.replace("45000", '"fast"'),
            "submit_ns: value: got 'fast'",
        ),
        (
            CLIENT.replace("45000", "-1"),
            "submit_ns: got -1 ... 0",
        ),
        (
            CLIENT.replace("45000", "nan"),
            "submit_ns: got nan ... 0",
        ),
        (
            "[client]\nsubmit_ns = 45000\n",
            "submit_ns: got 45000 ... lognormal_sigma",
        ),
    ],
)
def test_a_wrong_set_is_reported_with_a_line_for_each_problem(written, text, line):
    with pytest.raises(ParameterSetError) as caught:
        written(text).model(ClientModel, "client")
    assert states(str(caught.value), line)
    lines = str(caught.value).splitlines()
    assert len(lines) == len(caught.value.problems)
    assert all(each.startswith("mine.toml: ") for each in lines)


def named_in_a_scenario(name):
    text = f'schemes = ["rep:3"]\n[cluster]\nparameters = "{name}"\n'
    return build_models(parse_scenario(text, sets=["workload.requests=1"]))


@pytest.mark.parametrize("name", ["nowhere", "", "kraken.toml"])
def test_an_unknown_set_is_reported_with_those_there_are(name):
    with pytest.raises(
        ParameterSetError,
        match=f"^parameter set: got {name!r}, wanted one of .*kraken",
    ):
        ParameterSet(name)


@pytest.mark.parametrize("build", [ParameterSet, named_in_a_scenario])
def test_a_set_that_was_replaced_is_reported_with_the_one_that_replaced_it(build):
    with pytest.raises(ParameterSetError, match=r'got .koh2017..*"kraken"'):
        build("koh2017")


def ssd_text(**lines):
    numbers = {name: f"value = {value}" for name, value in SSD_NUMBERS.items()} | lines
    origin = 'provenance = "assumed"\nsource = "a test"'
    return "\n".join(
        f"[ssd.{name}]\n{line}\n{origin}\n" for name, line in numbers.items()
    )


SSD_NUMBERS = {
    "channels": 1,
    "raid0_drives": 1,
    "read_base_ns": 1,
    "read_ns_per_byte": 1,
    "write_base_ns": 1,
    "write_ns_per_byte": 1,
    "flush_base_ns": 1,
    "steady_state_write_factor": 1,
    "ftl_write_factor": 1,
    "block_bytes": 512,
    "write_servers_count": 0,
    "link_ns_per_byte": 0.0,
}


def test_a_distribution_from_a_file_is_scaled_to_mean_one(written):
    written("factor\n" + "1\n" * 128 + "3\n" * 128, "column.csv")
    chosen = written(
        ssd_text(
            read_quantiles='file = "column.csv"',
            write_quantiles="lognormal_sigma = 0.5",
        )
    )
    ssd = chosen.model(SsdModel, "ssd")
    assert ssd.read_quantiles == (0.5,) * 128 + (1.5,) * 128
    assert np.mean(ssd.write_quantiles) == pytest.approx(1)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (None, "wanted"),
        ("other\n1\n", "wanted ... 'factor'"),
        ("factor\nfast\n", "could not convert string to float"),
        ("factor\n", "wanted"),
        ("factor\n" + "nan\n" * 256, "wanted"),
        (
            "factor\n" + "-1\n3\n" * 128,
            "wanted",
        ),
        (
            "factor\n" + "1\n" * 255,
            "got 255 points of mean 1.0000, the least 1.0 ... 256",
        ),
    ],
)
def test_a_wrong_distribution_file_is_reported_in_one_line(written, column, said):
    if column is not None:
        written(column, "column.csv")
    chosen = written(
        ssd_text(
            read_quantiles='file = "column.csv"', write_quantiles="lognormal_sigma = 0"
        )
    )
    with pytest.raises(ParameterSetError) as caught:
        chosen.model(SsdModel, "ssd")
    assert states(str(caught.value), said)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("sigma", [0.0, 0.3, 0.752])
def test_lognormal_factors_are_a_lognormal_of_mean_one(sigma):
    factors = np.array(lognormal_factors(sigma))
    assert len(factors) == FACTOR_POINTS
    assert factors.mean() == pytest.approx(1)
    assert (np.diff(factors) >= 0).all()
    # The median of a lognormal with mean 1 is exp(-sigma²/2). 256 points cut less than 2 % of the tail.
    assert np.median(factors) == pytest.approx(np.exp(-(sigma**2) / 2), rel=0.02)
    assert np.log(factors).std() == pytest.approx(sigma, rel=0.02, abs=1e-12)
