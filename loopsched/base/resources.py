"""Where the files that loopsched ships lie: in the wheel, or in a checkout."""

from __future__ import annotations

from pathlib import Path

from loopsched.base.errors import LoopschedError

_PACKAGE = Path(__file__).resolve().parents[1]


def resource_dir(kind: str) -> Path:
    """Find the folder of shipped files of one kind.

    An installed wheel holds them inside the package; a source checkout, at
    its top.  The packaged folder wins.

    Parameters
    ----------
    kind : str
        ``workloads``, ``archs``, ``counters``, ``measurements`` or ``spaces``.

    Returns
    -------
    pathlib.Path
        An existing folder.

    Raises
    ------
    LoopschedError
        If neither place has it: the installation is not complete.

    Examples
    --------
    >>> resource_dir("workloads").name
    'workloads'
    """
    places = (_PACKAGE / "data" / kind, _PACKAGE.parent / kind)
    for place in places:
        if place.is_dir():
            return place
    looked = " nor ".join(str(place) for place in places)
    raise LoopschedError(
        f"no shipped folder '{kind}': neither {looked} exists; reinstall loopsched"
    )


def resource_names(kind: str, suffix: str) -> tuple[str, ...]:
    """List the shipped files of one kind by name, sorted, without their suffix.

    Examples
    --------
    >>> "resnet50" in resource_names("workloads", ".json")
    True
    """
    found = (path for path in resource_dir(kind).iterdir() if path.suffix == suffix)
    return tuple(sorted(path.stem for path in found))
