"""Tables of the report: encoders and present kernels, and decoders compared with the published LRC."""

import polars as pl

from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.show.tables import Table
from stripesim.scenarios.studies.erasurebench2016.codes import codes, explanations
from stripesim.scenarios.studies.erasurebench2016.experiment_numbers import size_bytes
from stripesim.scenarios.studies.erasurebench2016.sequences import ARCHIVES, MEGABYTE
from stripesim.scenarios.studies.erasurebench2016.source import STUDY, plotted
from stripesim.scenarios.studies.lookup import claims_of, select


def tables(rows: pl.DataFrame) -> list[Table]:
    """Return all tables."""
    return [encoder_table(rows), decoder_table(rows)]


def encoder_table(rows: pl.DataFrame) -> Table:
    """Return encode rates of the source and of kernels measured on a present machine [MB/s]."""
    measured = select(rows, experiment="kernels", op="encode")
    lines = []
    for claim in claims_of(STUDY):
        if claim.metric != "encode_throughput":
            continue
        mine = select(measured, code=claim.scheme, block_size_bytes=size_bytes(claim))
        fastest_first = mine.sort("throughput_bytes_per_s", descending=True)
        kernels = ", ".join(
            f"{row['backend']} {row['throughput_bytes_per_s'] / MEGABYTE:,.0f}"
            for row in fastest_first.iter_rows(named=True)
        )
        size = claim.block_size.replace("MB", " MB")
        lines.append((claim.scheme, size, f"{claim.published}", kernels or "–"))
    columns = ("code", "data", "source, Java [MB/s]", "measured here [MB/s]")
    heading = "Table II: encoders then, kernels now"
    return Table(heading, columns, lines, form="stack", numeric=False)


def decoder_distances(rows: pl.DataFrame) -> dict[str, dict[str, float]]:
    """Return each decoder's largest distance from the published LRC curve, from 1 % killed, by archive."""

    def distance(name: str, archive: str) -> float:
        curve = select(rows, experiment="availability", code=name, archive=archive)
        simulated = dict(
            zip(curve["killed_fraction"].round(2), curve["available"], strict=True)
        )
        points = plotted(4, code="LRC", series=archive)
        pairs = zip(points["x"], points["y"], strict=True)
        return max(float(abs(simulated[round(x, 2)] - y)) for x, y in pairs)

    return {
        name: {archive: distance(name, archive) for archive in ARCHIVES}
        for name in ("LRC", *explanations())
    }


def decoder_table(rows: pl.DataFrame) -> Table:
    """Return the distances of decoders and the number of losses that they survive."""
    lines = []
    for name, distances in decoder_distances(rows).items():
        code = codes().get(name) or explanations()[name]
        survived = ", ".join(str(count) for count in code.decodable[2:7])
        decoder_name = "any decodable pattern (ours)" if name == "LRC" else name
        lines.append((decoder_name, survived, *map(number_text, distances.values())))
    heads = [f"largest distance, {archive}" for archive in ARCHIVES]
    columns = ("decoder", "sets of 2 … 6 losses survived", *heads)
    heading = "Decoders as explanations of the published LRC in Figure 4"
    return Table(heading, columns, lines, form="stack", numeric=False)
