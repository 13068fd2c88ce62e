"""Check proofs: does what a search wrote down prove what it says?

Imports nothing of the search or the models: only readers of problems, machines and
notation.  What a proof says, and why each step holds, is in docs/proofs.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from loopsched.base.errors import ProofError
from loopsched.verify.log import Verdict, verify_proof
from loopsched.verify.readers import read_proofs

__all__ = ["Verdict", "read_proofs", "verify_proof", "verify_proofs"]


def verify_proofs(path: str | os.PathLike[str]) -> Iterator[Verdict]:
    """Check a file of proofs, one per line.

    Parameters
    ----------
    path : path
        As ``loopsched search --proof`` writes it.

    Yields
    ------
    Verdict
        One per proof, in order.

    Raises
    ------
    ProofError
        At the first line that proves nothing, or less than it says.

    See Also
    --------
    verify_proof
    """
    for number, line in enumerate(read_proofs(path), 1):
        try:
            yield verify_proof(line)
        except ProofError as error:
            raise ProofError(f"{os.fspath(path)}, line {number}: {error}") from None
