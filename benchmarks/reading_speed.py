"""Time and memory of reading a HotpotQA training file of the published size: 90,447 records, 540 MB.

    python benchmarks/reading_speed.py [--records 90447] [--check]

The file repeats the records of <RAGTRIALS_DATA>/hotpotqa/train.json[.gz] under new ids. It is written to a
temporary folder and read by the task itself, in a process of its own. The CPU time of reading, so that other
work on the machine counts little, is compared to a fixed loop that is timed beside it, which makes figures of
different machines comparable. --check exits with 1 if the process takes more than 1 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

from measuring import calibration, in_own_process, memory

from ragtrials.files import find_data_file, read_json_array
from ragtrials.task import DATA_VARIABLE
from ragtrials.tasks.hotpotqa import HotpotQA

RECORDS = 90_447
LIMIT_BYTES = 1_000_000_000


def repeated(sample: Path) -> Iterator[str]:
    """The sample's records over and over, each time under other ids."""
    records = [dict(record.fields) for record in read_json_array(sample)]
    for turn in count():
        for record in records:
            yield json.dumps({**record, "_id": f"{record['_id']}-{turn}"})


def write(folder: Path, records: int) -> Path:
    """A data folder's hotpotqa: the long training file, and the sample's development file as it is."""
    source = Path(os.environ[DATA_VARIABLE]) if os.environ.get(DATA_VARIABLE) else None
    target = folder / "hotpotqa"
    target.mkdir()
    dev = find_data_file(source, "hotpotqa", "dev", ["json"])
    shutil.copyfile(dev, target / dev.name)
    file = target / "train.json"
    with file.open("w", encoding="utf-8") as whole:
        parts = islice(repeated(find_data_file(source, "hotpotqa", "train", ["json"])), records)
        whole.write("[" + next(parts))
        whole.writelines(f", {part}" for part in parts)
        whole.write("]")
    return file


def read(folder: Path) -> dict[str, float]:
    loop, began = calibration(), time.process_time()
    examples = HotpotQA(folder).examples("train")
    seconds = time.process_time() - began
    loop = (loop + calibration()) / 2
    return {
        "examples": len(examples),
        "seconds": seconds,
        "loops": seconds / loop,
        "peak": memory("VmHWM"),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--check", action="store_true", help="exit with 1 above the limit")
    parser.add_argument("--read", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        print(json.dumps(read(options.read)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        size = write(Path(folder), options.records).stat().st_size
        row = in_own_process(__file__, "--read", folder)
    rate = f"{size / 1e6 / row['seconds']:.0f} MB/s, {row['loops']:.1f} x loop"
    print(f"{options.records:,} records, {size / 1e6:.0f} MB: {row['examples']:,} examples", end="")
    print(f" in {row['seconds']:.1f} s ({rate}),", end="")
    print(f" peak {row['peak'] / 1e6:.0f} MB (limit {LIMIT_BYTES / 1e6:.0f} MB)")
    return int(options.check and row["peak"] > LIMIT_BYTES)


if __name__ == "__main__":
    sys.exit(main())
