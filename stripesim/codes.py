"""Write your own code: what its class holds, and matrices to start from.

`CodeDescription` says what the simulator needs. A file with such a class goes to ``--code`` or into a
scenario's ``codes``; a package names it as an entry point of the group ``stripesim.codes``. The guide is
``docs/howto/own-code.md``. These names are stable, as those of `stripesim.api` are.
"""

from stripesim.models.coding.galois import (
    cauchy_matrix,
    invert,
    matrix_product,
    rank,
    vandermonde_matrix,
)
from stripesim.models.coding.own_code import CodeDescription
from stripesim.models.coding.own_files import load_code_file
from stripesim.models.problems import OwnCodeError

__all__ = [
    "CodeDescription",
    "OwnCodeError",
    "cauchy_matrix",
    "invert",
    "load_code_file",
    "matrix_product",
    "rank",
    "vandermonde_matrix",
]
