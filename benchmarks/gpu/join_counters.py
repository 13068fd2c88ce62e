"""Put launched.csv beside what Nsight Compute counted of it (counted.csv), as mine.csv."""

from __future__ import annotations

import csv
from pathlib import Path

NAMES = {
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "l2_read_sectors": "lts__t_sectors_srcunit_tex_op_read.sum",
}


def main() -> None:
    launched = list(csv.DictReader(Path("launched.csv").read_text(encoding="utf-8").splitlines()))
    lines = Path("counted.csv").read_text(encoding="utf-8").splitlines()
    counted = list(csv.DictReader(line for line in lines if not line.startswith("==")))
    with open("mine.csv", "w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, [*launched[0], *NAMES])
        out.writeheader()
        for launch, count in zip(launched, counted[1:], strict=True):  # the first row holds units
            found = {name: count[metric].replace(",", "") for name, metric in NAMES.items()}
            out.writerow(launch | found)


if __name__ == "__main__":
    main()
