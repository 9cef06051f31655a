"""The continuous distributions of service times, whose cells have the stated factors as means."""

import numpy as np
import pytest

from stripesim.calibration.parameters.sets import ParameterSet, lognormal_factors
from stripesim.sim.engine.draws import (
    CELL_KNOT,
    CELL_LATER_RISE,
    CELL_LOW,
    CELL_RISE,
    FACTOR_MAX,
    FACTOR_ONE,
    FACTOR_POINTS,
    drawn_factor,
    factor_cells,
    factor_table,
)

POSITIONS = np.arange(FACTOR_ONE, dtype=np.int64)
TABLES = {
    "lognormal": factor_table(lognormal_factors(0.25)),
    "measured": factor_table(ParameterSet("samsung-pm983").device().read_quantiles),
    "disk": factor_table(ParameterSet("hdd-7200").device().read_quantiles),
    "two values": factor_table([0.5] * 128 + [1.5] * 128),
    "one value decides": factor_table([0.0] * 255 + [256.0]),
}


def factors(cell):
    """Return the factor at each position of a cell."""
    early = np.minimum(POSITIONS, cell[CELL_KNOT])
    climbed = early * cell[CELL_RISE] + (POSITIONS - early) * cell[CELL_LATER_RISE]
    return cell[CELL_LOW] + (climbed + FACTOR_ONE // 2) // FACTOR_ONE


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_each_cell_has_the_factor_of_the_table_as_its_mean(table):
    cells = factor_cells([table])[0]
    for j in (0, 1, 127, 128, 253, 254, 255):
        # Halves of units are rounded, and knots to a millionth of a cell.
        allowed = 2 + 2e-6 * cells[j, CELL_RISE : CELL_LATER_RISE + 1].max()
        assert factors(cells[j]).mean() == pytest.approx(table[j], abs=allowed, rel=0)
        assert factors(cells[j]).max() <= max(FACTOR_MAX, table[j])


def test_neighbouring_cells_meet_halfway_between_their_means():
    cells = factor_cells([TABLES["measured"]])[0]
    for j in (0, 100, 253, 254):
        halfway = (TABLES["measured"][j] + TABLES["measured"][j + 1]) / 2
        assert factors(cells[j])[-1] == pytest.approx(halfway, rel=1e-4)
        assert factors(cells[j + 1])[0] == pytest.approx(halfway, rel=1e-4)


def test_the_last_cell_has_the_variance_of_an_exponential_tail():
    # Means … 1 and 2: the last cell begins at 1.5, reaches 0.5 down and 1.5 up, and is at 2 after 1.5 / 2 of
    # its width. Below the knot the factor is uniform on 1.5 … 2, above on 2 … 3.5:
    # variance 0.75 × 0.5² / 3 + 0.25 × 1.5² / 3 = 0.0625 + 0.1875 = 0.5².
    cell = factor_cells([[FACTOR_ONE] * 255 + [2 * FACTOR_ONE]])[0, -1]
    drawn = factors(cell) / FACTOR_ONE
    assert drawn[0] == 1.5
    assert drawn[FACTOR_ONE * 3 // 4] == 2
    assert drawn[-1] == pytest.approx(3.5, abs=1e-5)
    assert drawn.mean() == pytest.approx(2, abs=1e-6)
    assert drawn.var() == pytest.approx(0.25, rel=1e-5)


def test_no_draw_is_below_zero_and_ties_stay_ties():
    cells = factor_cells([TABLES["two values"], TABLES["one value decides"]])
    assert set(factors(cells[0, 5])) == {FACTOR_ONE // 2}
    assert set(factors(cells[1, 0])) == {0}
    # The least of means 1 … 256 (of mean 1) is as far from its end as from its upper neighbour.
    rising = factor_cells([np.arange(FACTOR_POINTS) * 2 * FACTOR_ONE // 255])[0]
    assert factors(rising[0]).min() == 0


@pytest.mark.parametrize("order", [1, -1])
def test_a_table_of_ones_has_no_spread_and_order_does_not_matter(order):
    ones = factor_cells([[FACTOR_ONE] * FACTOR_POINTS])[0].tolist()
    assert {drawn_factor(ones, 3, key) for key in range(1000)} == {FACTOR_ONE}
    table = TABLES["measured"][::order]
    assert (factor_cells([table]) == factor_cells([TABLES["measured"]])).all()


def test_the_tail_of_draws_is_continuous():
    # Of 40,000 draws about 313 fall into the two highest cells, which were two values before.
    cells = factor_cells([TABLES["measured"]])[0].tolist()
    drawn = np.array([drawn_factor(cells, 7, key) for key in range(40_000)])
    tail = drawn[drawn > TABLES["measured"][253] * 1.5]
    assert 200 < len(tail) < 450
    assert len(set(tail)) > 0.95 * len(tail)
