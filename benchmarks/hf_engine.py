"""The transformers engine against a hand-written loop over `model.generate`, on the quick-start model.

    python benchmarks/hf_engine.py [--prompts 48] [--new-tokens 16] [--batch-size 8] [--repeats 3]

The same chats, the same loaded model, the same batch size. The loop is timed twice: over prompts that
were sorted by length beforehand, and over prompts as they come. The three take turns, so that a busy
machine hits them alike; the rows show medians over the turns, and the median of each turn's ratio to the
engine. CPU seconds stand beside the wall clock's: where others use the machine too, they are the
steadier measure. Exit code 1 if the engine is below 0.95 of the sorted loop or not above the
unsorted one.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Sequence

import torch

from ragtrials.llm.build import load_engine
from ragtrials.llm.hf import HFEngine
from ragtrials.program import Evidence, Generate, user

TEXT = (
    "the river city of Paris lies on its banks and was founded by a king who came from the north in "
    "search of gold, salt and a quiet harbour; today about two million people live there"
)


def chats(count: int, new_tokens: int) -> list[Generate]:
    """Questions with evidence of 20 to 200 words, in random order; the same ones every time."""
    rng = random.Random(0)
    words = TEXT.split()
    requests = []
    for index in range(count):
        length = round(20 * 10 ** (index / max(1, count - 1)))
        passage = Evidence(" ".join(rng.choice(words) for _ in range(length)))
        question = f"\n\nQuestion {index}: what lies on the river? Answer in a short phrase."
        requests.append(Generate((user(passage, question),), max_new_tokens=new_tokens))
    rng.shuffle(requests)
    return requests


def hand_written(engine: HFEngine, texts: Sequence[str], new_tokens: int, batch_size: int) -> list[str]:
    """What one writes without this project: pad on the left, generate, decode."""
    tokenizer, model = engine.tokenizer, engine.model
    tokenizer.padding_side = "left"
    answers = []
    for start in range(0, len(texts), batch_size):
        batch = tokenizer(
            list(texts[start : start + batch_size]),
            add_special_tokens=False,
            padding=True,
            return_tensors="pt",
        )
        with torch.inference_mode():
            output = model.generate(
                **batch.to(model.device),
                max_new_tokens=new_tokens,
                do_sample=False,
                eos_token_id=tokenizer.eos_token_id,
                pad_token_id=tokenizer.pad_token_id,
            )
        answers += tokenizer.batch_decode(output[:, batch["input_ids"].shape[1] :], skip_special_tokens=True)
    return answers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=int, default=48)
    parser.add_argument("--new-tokens", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=None, help="CPU threads (default: as torch decides)")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    engine = load_engine("quickstart", batch_size=options.batch_size)
    assert isinstance(engine, HFEngine)
    requests = chats(options.prompts, options.new_tokens)
    texts = [
        engine.tokenizer.apply_chat_template(
            [{"role": "user", "content": request.messages[0].text}],
            add_generation_prompt=True,
            tokenize=False,
        )
        for request in requests
    ]
    lengths = [len(engine.tokenizer(text).input_ids) for text in texts]
    longest_first = [text for _, text in sorted(zip(lengths, texts, strict=True), reverse=True)]
    seeds = [0] * len(requests)
    variants: dict[str, Callable[[], object]] = {
        "engine": lambda: engine.generate(requests, seeds),
        "loop, sorted": lambda: hand_written(engine, longest_first, options.new_tokens, options.batch_size),
        "loop, unsorted": lambda: hand_written(engine, texts, options.new_tokens, options.batch_size),
    }
    print(
        f"{engine.name}, {engine.settings.dtype} on {engine.settings.device}, "
        f"{torch.get_num_threads()} threads, {len(texts)} prompts of {min(lengths)} to {max(lengths)} tokens "
        f"({sum(lengths)} in all), "
        f"{options.new_tokens} new tokens, batch {options.batch_size}"
    )
    engine.generate(requests[: options.batch_size], seeds[: options.batch_size])  # warm up
    wall: dict[str, list[float]] = {name: [] for name in variants}
    cpu: dict[str, list[float]] = {name: [] for name in variants}
    names = list(variants)
    for turn in range(options.repeats):
        for name in names[turn % 3 :] + names[: turn % 3]:  # none is always first
            start = time.perf_counter(), time.process_time()
            variants[name]()
            wall[name].append(time.perf_counter() - start[0])
            cpu[name].append(time.process_time() - start[1])
    columns = f"{'seconds':>9}{'prompts/s':>11}{'/ engine':>10}{'CPU s':>9}{'/ engine':>10}"
    print(f"{'':16}{columns}   seconds of each turn")
    ratio = {name: relative(taken, wall["engine"]) for name, taken in wall.items()}
    for name, taken in wall.items():
        median = statistics.median(taken)
        print(
            f"{name:16}{median:9.2f}{len(texts) / median:11.2f}{ratio[name]:9.2f}x"
            f"{statistics.median(cpu[name]):9.2f}{relative(cpu[name], cpu['engine']):9.2f}x   "
            + " ".join(f"{value:.1f}" for value in taken)
        )
    return 0 if ratio["loop, sorted"] >= 0.95 and ratio["loop, unsorted"] > 1 else 1


def relative(taken: Sequence[float], engine: Sequence[float]) -> float:
    """How many times as long as the engine: the median over the turns."""
    return statistics.median(one / other for one, other in zip(taken, engine, strict=True))


if __name__ == "__main__":
    raise SystemExit(main())
