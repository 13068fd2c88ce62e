"""The command line with streams that are full, closed, or in another encoding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from loopsched.base.rows import read_rows
from loopsched.cli import run

NAME = '{"op": "gemm", "name": "größe→𝄞", "m": 4, "n": 3, "k": 2}'
BAD = os.fsdecode(b"y\xff")


def shell(line: str, *words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of shell, in which ``loopsched`` is the command."""
    script = f'loopsched() {{ "{sys.executable}" -m loopsched "$@"; }}\n{line}'
    return subprocess.run(
        ["bash", "-c", script, "bash", *words],
        capture_output=True,
        env=dict(os.environ) | environment,
        timeout=120,
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has it")
@pytest.mark.parametrize("words", ["archs", "--help", "archs titan_v --format json"])
def test_a_full_output_is_one_message(words: str) -> None:
    done = shell(f"loopsched {words} > /dev/full")
    assert done.stderr == b"Error: standard output: No space left on device\n"
    assert done.returncode == 3


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_closed_streams_lead_nowhere(closed: str, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    done = shell(f'loopsched search gemm:m=4,n=3,k=2 --out "$1" {closed}', str(out))
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(list(read_rows(out))) == 1


def test_a_reader_that_has_had_enough_is_no_error() -> None:
    done = shell("loopsched workloads deepbench_gemm | head -n 1; echo ${PIPESTATUS[0]}")
    assert done.stderr == b""
    assert done.stdout.splitlines()[-1] in (b"0", b"141")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_name_is_printed_in_any_encoding(encoding: str) -> None:
    line = 'loopsched search "$1"; loopsched search "$1" --format json'
    done = shell(line, NAME, PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    # Tables on an ASCII stream are UTF-8 all the same: click takes such a stream for a mistake.
    text, _, rows = done.stdout.decode("latin-1" if encoding == "latin-1" else "utf-8").partition(
        "[\n"
    )
    assert (r"größe\u2192\ud834\udd1e" if encoding == "latin-1" else "größe→𝄞") in text
    assert json.loads(f"[{rows}")[0]["problem"] == "größe→𝄞"


def test_without_a_locale() -> None:
    done = shell(
        "loopsched workloads resnet50", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_names_of_files_that_are_not_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        Path(f"{BAD}.json").write_text('{"layers": [{"op": "gemm", "m": 4, "n": 3, "k": 2}]}')
    except OSError:
        pytest.skip("file names are text on this system")
    assert run(["search", f"{BAD}.json", "--out", f"{BAD}.jsonl"]) == 0
    [(_, row)] = read_rows(f"{BAD}.jsonl")
    assert row["workload"] == f"{BAD}.json"
    assert run(["search", f"{BAD}.json", "--out", "rows.parquet"]) == 3
    assert "'workload'" in capsys.readouterr().err
    assert run(["search", "none-such" + BAD]) == 3
    assert "no such file" in capsys.readouterr().err
