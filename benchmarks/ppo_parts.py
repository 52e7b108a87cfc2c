"""What `ppo_speed.py` measures with: the agents' program, a model, and plain passes of transformers."""

from __future__ import annotations

import argparse
import copy
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from measuring import memory

from ragtrials.llm.loading import load_tokenizer
from ragtrials.llm.models import resolve_model
from ragtrials.llm.quiet import quiet_transformers
from ragtrials.methods._selection import selection_strings
from ragtrials.program import Program, generate, user
from ragtrials.training import _trl, weights
from ragtrials.training.agents import Agents
from ragtrials.training.ppo_settings import Ppo
from ragtrials.training.programs import Answer, sampled
from ragtrials.training.run import Surroundings, TrainRun
from ragtrials.training.scalars import ScalarLog
from ragtrials.training.settings import ALL_LINEAR, Lora, Optimisation
from ragtrials.training.turns import Turn

AGENTS: Mapping[str, tuple[int, dict[str, Any]]] = {
    "rewriter": (100, {"max_new_tokens": 24}),
    "selector": (350, {"max_new_tokens": 12, "allowed": selection_strings(5)}),
    "generator": (250, {"max_new_tokens": 8}),
}
"""For each agent about how many tokens it reads, and how it is asked."""
SHAPES = {
    "tiny": (64, 128, 3, 4, 2, True),
    "1b": (2048, 8192, 16, 32, 8, True),
    "8b": (4096, 14336, 32, 32, 8, False),
}
"""Width, width inside the MLP, layers, heads, heads of keys and values, whether the embeddings are tied."""
VOCABULARY = 128_256
TEMPLATE = 40
"""Tokens of a prompt that are not its text, roughly."""
WORDS = "the river city lies on its banks and was founded by a king who came from the north in search of gold"


def random_model(shape: str, folder: Path, device: str, dtype: str) -> Path:
    """Write a random Llama; it seldom ends a turn, so responses have their full length."""
    from transformers import AutoModelForCausalLM, LlamaConfig

    tokenizer = load_tokenizer(resolve_model("quickstart"))
    hidden, inner, layers, heads, key_heads, tied = SHAPES[shape]
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=key_heads,
        tie_word_embeddings=tied,
        max_position_embeddings=8192,
        rope_parameters={"rope_type": "default", "rope_theta": 500_000.0},
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    torch.manual_seed(0)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype))
    with quiet_transformers():
        model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def training(options: argparse.Namespace, folder: Path) -> TrainRun:
    """A training without data on the model that the options name."""

    def no_engine(policies: Mapping[str, Path]) -> Any:
        raise AssertionError("agents have the model in memory")

    surroundings = Surroundings(
        label="ppo_speed",
        task="none",
        train_id="none",
        folder=folder,
        seed=0,
        chunk=1000,
        base=resolve_model(options.model),
        dtype=options.dtype,
        device=options.device,
        batch_size=options.batch_size,
        max_prompt_tokens=8192,
        retriever=None,
        load_engine=no_engine,
        free_engine=lambda: None,
        reward=lambda answer, example: 0.0,
        log=ScalarLog(folder),
    )
    return TrainRun([], [], surroundings)


def settings_of(options: argparse.Namespace, turns: int, last_layers: int | None = None) -> Ppo:
    """One step of the optimiser over all turns."""
    update = Optimisation(
        lora=Lora(r=16, targets=ALL_LINEAR, last_layers=last_layers),
        learning_rate=1e-6,
        batch_size=-(-turns // options.micro_batch) * options.micro_batch,
        micro_batch=options.micro_batch,
        gradient_checkpointing=options.gradient_checkpointing,
    )
    return Ppo(steps=1000, update=update)


def acting() -> Answer:
    """The agents' program; what they read hangs on the question alone."""

    def answer(question: str) -> Program:
        draw, text = random.Random(question), ""
        for role, (length, how) in AGENTS.items():
            count = round((length - TEMPLATE) * draw.uniform(0.8, 1.2))
            prompt = f"{question} {' '.join(draw.choices(WORDS.split(), k=count))}"
            text = (yield from generate((user(prompt),), role=role, **how)).text
        return text

    return sampled(answer, tuple(AGENTS), 1.0)


def plain(model: Any, pad: int, batches: Sequence[Sequence[Turn]], learn: bool, mixed: bool) -> None:
    """What one writes without this project, padded on the left so that the responses end together."""
    for batch in batches:
        rows = [turn.prompt_ids + turn.response_ids for turn in batch]
        longest, width = max(map(len, rows)), max(len(turn.response_ids) for turn in batch)
        gaps = [longest - len(row) for row in rows]
        ids = [[pad] * gap + list(row) for gap, row in zip(gaps, rows, strict=True)]
        real = [[0] * gap + [1] * len(row) for gap, row in zip(gaps, rows, strict=True)]
        labels = [[-100] * (width - len(t.response_ids)) + list(t.response_ids) for t in batch]
        inputs, mask, target = (torch.tensor(x, device=model.device) for x in (ids, real, labels))
        with (
            torch.set_grad_enabled(learn),
            torch.autocast(model.device.type, torch.bfloat16, enabled=mixed),
        ):
            output = model(input_ids=inputs, attention_mask=mask, use_cache=False, logits_to_keep=width + 1)
            logits = output.logits[:, :-1].float()
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
        if learn:
            loss.backward()
    model.zero_grad()


@contextmanager
def at_work(run: TrainRun, settings: Ppo) -> Iterator[Agents]:
    """Agents that share one policy; their model's memory is given back in the end."""
    agents = Agents(run, "ppo", {"shared": tuple(AGENTS)}, settings)
    try:
        yield agents
    finally:
        agents.release()


def plain_of(run: TrainRun, agents: Agents, batches: Sequence[Sequence[Turn]], learn: bool) -> None:
    """A plain pass with the agents' model and adapter."""
    mixed = run.dtype == "bfloat16" and run.device.startswith("cuda")
    with agents.ppo.models.actors.speaking("shared") as model:
        plain(model, run.tokenizer.pad_token_id or 0, batches, learn, mixed)


def tokens_of(turns: Sequence[Turn]) -> int:
    return sum(len(turn.prompt_ids) + len(turn.response_ids) for turn in turns)


class Silent:
    """Progress that nobody sees."""

    def advance(self, units: float) -> None:
        """Nothing."""


def one_step(kind: str, run: TrainRun, settings: Ppo, turns: Sequence[Turn]) -> Callable[[], object]:
    """A step of PPO or SFT on turns, with its model loaded."""
    if kind == "ppo":
        return partial(Agents(run, "ppo", {"shared": tuple(AGENTS)}, settings).ppo.step, turns)
    model = weights.load_trainable(run.base, None, settings.update, run.dtype, run.device, 0)
    rows = []
    for turn in turns:
        labels = [-100] * len(turn.prompt_ids) + list(turn.response_ids)
        rows.append({"input_ids": [*turn.prompt_ids, *turn.response_ids], "labels": labels})
    log = ScalarLog(run.folder)
    setup = _trl.Setup(
        settings.update,
        0,
        run.device,
        run.dtype,
        run.folder / "steps",
        partial(log.write, "sft"),
        Silent(),
    )
    return partial(_trl.run_sft, model, run.tokenizer, rows, [], setup)


def step_memory(kind: str, options: argparse.Namespace, folder: Path) -> dict[str, int]:
    """Bytes with the model loaded, and how far one step goes above them."""
    turns = [Turn(**turn) for turn in json.loads((folder / "turns.json").read_text("ascii"))]
    settings = settings_of(options, len(turns))
    # Libraries that are imported late would weigh, too: first a step of a tiny model.
    warm = copy.copy(options)
    warm.model = str(random_model("tiny", folder / f"tiny-{kind}", options.device, "float32"))
    ids = turns[0].prompt_ids
    short = replace(turns[0], prompt_ids=ids[:8], response_ids=ids[8:10], allowed=())
    one_step(kind, training(warm, folder / f"warm-{kind}"), settings, [short])()
    work = one_step(kind, training(options, folder / kind), settings, turns)
    weights.release(options.device)
    if options.device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats()
        loaded = torch.cuda.memory_allocated()
        work()
        return {"loaded": loaded, "growth": torch.cuda.max_memory_allocated() - loaded}
    Path("/proc/self/clear_refs").write_text("5", "ascii")  # the peak begins anew (see proc(5))
    loaded = memory("VmRSS")
    work()
    return {"loaded": loaded, "growth": memory("VmHWM") - loaded}
