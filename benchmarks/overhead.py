"""How much of finished runs was spent outside the model and the retriever, reading the data included.

    python benchmarks/overhead.py [RESULTS] [--check]

RESULTS is a folder of records (default: runs/quickstart/results). --check exits with 1 if the share is
above 3 %, or if there is no record.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ragtrials.results import read_all

LIMIT = 0.03


def main(arguments: list[str]) -> int:
    words = [word for word in arguments if not word.startswith("--")]
    stored, _ = read_all(Path(words[0] if words else "runs/quickstart/results"))
    names = ("seconds", "load_seconds", "engine_seconds", "retriever_seconds")
    total, load, engine, retriever = (sum(run.record.times[name] for run in stored) for name in names)
    if not total:
        print("no records")
        return 1
    outside = total - load - engine - retriever
    print(f"{len(stored)} runs, {total:.1f} s: loading {load:.1f}, model {engine:.1f}, ", end="")
    print(f"retriever {retriever:.2f},")
    print(f"everything else {outside:.2f} s = {100 * outside / total:.2f} % (limit {100 * LIMIT:.0f} %)")
    return int("--check" in arguments and outside / total > LIMIT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
