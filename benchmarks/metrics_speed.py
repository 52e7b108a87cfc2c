"""Time and memory of scoring 1,000,000 predictions, one metric after the other.

    python benchmarks/metrics_speed.py [--predictions 1000000] [--metrics hotpotqa_v1 squad_v1 ...] [--check]

Predictions are made up: 1 to 40 words, some empty, some right, with accents, numbers and punctuation, and
none like another; golds have 1 to 3 aliases. Each metric scores all of them in a process of its own, on one
core, by `ragtrials.metrics.score`. "seconds" is the CPU time of scoring alone, so that other work on the
machine counts little; "x loop" compares it to a fixed loop that is timed beside it, which makes figures of
different machines comparable. "peak MB" is the whole process. --check exits with 1 if a metric takes more
than 60 s or 1 GB.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from measuring import calibration, in_own_process, memory

from ragtrials.metrics import METRICS, score

PREDICTIONS = 1_000_000
LIMIT_SECONDS = 60.0
LIMIT_BYTES = 1_000_000_000
CHUNK = 10_000
MAIN_METRICS = [name for name in METRICS if not name.startswith("compat_") and name != "curatedtrec"]
"""Without CuratedTREC's: its golds are patterns, 694 in all; a million, each to be compiled, do not occur."""
PIECES = [*"aeiou", *"bcdfghklmnprstvw", "sch", "th", "ng"]
BEYOND_ASCII = ["é", "ü", "ñ", "ø", "ą", "\u2013", "\u2019"]
COMMON = ["the", "a", "of", "in", "and", "an", "yes", "no", "1,000", "St.", "Jean-Luc", "U.S."]

Item = tuple[str, list[str]]


def made_up(count: int) -> Iterator[Item]:
    """Predictions with their aliases; words are as unevenly common as in natural text (Zipf's law)."""
    draw = random.Random(0)
    words = ["".join(draw.choices(PIECES, k=draw.randint(2, 6))) for _ in range(20_000)]
    words = [word + draw.choice(BEYOND_ASCII) if draw.random() < 0.03 else word for word in words]
    words = COMMON + [word.title() if draw.random() < 0.3 else word for word in words]
    weights = list(accumulate(1 / (rank + 3) for rank in range(len(words))))

    def text(most: int) -> str:
        return " ".join(draw.choices(words, cum_weights=weights, k=draw.randint(1, most)))

    for _ in range(count):
        aliases = [text(5) for _ in range(draw.randint(1, 3))]
        kind = draw.random()
        if kind < 0.03:
            yield "", aliases
        elif kind < 0.2:
            yield draw.choice(aliases).upper() + ".", aliases
        elif kind < 0.4:
            yield f"{text(18)}, {draw.choice(aliases)} ({text(16)})", aliases
        else:
            yield text(40), aliases


GOLDS: dict[int, Callable[[list[str]], Any]] = {
    1: lambda aliases: aliases,
    2: lambda aliases: [[alias] for alias in aliases],
    3: lambda aliases: [[[alias] for alias in aliases], [aliases]],
}
LABELS: dict[str, Callable[[list[str]], Any]] = {
    "strategyqa_acc": lambda aliases: len(aliases) == 1,
    "fever_acc": lambda aliases: ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")[len(aliases) - 1],
}


def shaped(name: str, items: Iterable[Item]) -> list[tuple[Any, Any]]:
    """The same predictions and golds as the metric wants them."""
    metric = METRICS[name]
    gold = LABELS.get(name) or GOLDS[metric.gold_depth]
    several = metric.prediction_depth == 1
    return [(text.split(", ") if several else text, gold(aliases)) for text, aliases in items]


def run_metric(name: str, file: Path) -> dict[str, float]:
    """Score the whole file; only the calls of `score` are timed."""
    seconds, total, loop = 0.0, 0.0, calibration()
    main_value = METRICS[name].values[0]
    with file.open(encoding="utf-8") as lines:
        while chunk := list(islice(lines, CHUNK)):
            pairs = shaped(name, map(json.loads, chunk))
            began = time.process_time()
            for prediction, gold in pairs:
                total += score(name, prediction, gold)[main_value]
            seconds += time.process_time() - began
    loop = (loop + calibration()) / 2
    return {"seconds": seconds, "loops": seconds / loop, "peak": memory("VmHWM"), "total": total}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--predictions", type=int, default=PREDICTIONS)
    parser.add_argument("--metrics", nargs="+", default=MAIN_METRICS, choices=sorted(METRICS), metavar="NAME")
    parser.add_argument("--check", action="store_true", help="exit with 1 above the limits")
    parser.add_argument("--one", nargs=2, metavar=("METRIC", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run_metric(options.one[0], Path(options.one[1]))))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return compare(Path(folder), options.predictions, options.metrics, options.check)


def compare(folder: Path, count: int, names: list[str], check: bool) -> int:
    file = folder / "predictions.jsonl"
    with file.open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(item, ensure_ascii=False) + "\n" for item in made_up(count))
    scale = PREDICTIONS / count
    limits = f"{LIMIT_SECONDS:.0f} s for {PREDICTIONS:,}, {LIMIT_BYTES / 1e6:.0f} MB"
    print(f"{count:,} predictions; limits: {limits}")
    print(f"{'metric':20} {'seconds':>8} {'x loop':>7} {'peak MB':>8} {'mean':>6}")
    above = []
    for name in names:
        row = in_own_process(__file__, "--one", name, str(file))
        print(f"{name:20} {row['seconds']:8.1f} {row['loops']:7.1f} {row['peak'] / 1e6:8.0f}", end="")
        print(f" {row['total'] / count:6.3f}", flush=True)
        if row["seconds"] * scale > LIMIT_SECONDS or row["peak"] > LIMIT_BYTES:
            above.append(name)
    if above:
        print(f"above a limit: {', '.join(above)}")
    return int(check and bool(above))


if __name__ == "__main__":
    sys.exit(main())
