"""What is trained on: demonstrations for supervised fine-tuning, preferences for DPO, and their token ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragtrials.program import Completion, Evidence, Message, Part, assistant

if TYPE_CHECKING:
    from ragtrials.llm.prompts import PromptBuilder


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A chat and what the model should say next.

    Attributes:
        messages: The prompt, as a method's program renders it.
        completion: The target. Of a `Completion` that ended its turn the very ids that were sampled are
            trained on. A text, and a sample that a stop string or the length ended, is tokenised as what
            follows the prompt, and the end of the turn is put behind it. Parts are a text with control
            tokens, and with evidence, which the model reads but does not learn to write: no loss is on it.
        role: The agent that should say it.
    """

    messages: tuple[Message, ...]
    completion: str | Completion | tuple[Part, ...]
    role: str = "generator"


@dataclass(frozen=True, slots=True)
class Preference:
    """A chat with a better and a worse continuation."""

    messages: tuple[Message, ...]
    chosen: str | Completion
    rejected: str | Completion


@dataclass(frozen=True, slots=True)
class RowEncoder:
    """Turns rows into token ids, with the prompt builder of the engines, so that the prompt of training is
    the prompt of evaluation to the last token.

    Attributes:
        prompts: The model's prompt builder.
        max_prompt_tokens: Longer prompts have their passages shortened, as in evaluation.
        context: The model's longest sequence, None if it has none.
    """

    prompts: PromptBuilder
    max_prompt_tokens: int
    context: int | None = None

    def sft(self, row: Demonstration) -> dict[str, list[int]]:
        """`input_ids` and `labels` of trl's SFTTrainer: the loss is on the completion and its end alone."""
        if isinstance(row.completion, tuple):
            return self._parts(row.messages, row.completion)
        (target,) = self._completions(row.completion)
        prompt = self._prompt(row.messages, len(target))
        return {"input_ids": prompt + target, "labels": [-100] * len(prompt) + target}

    def _parts(self, messages: tuple[Message, ...], parts: tuple[Part, ...]) -> dict[str, list[int]]:
        """A row whose completion is parts: no loss is on evidence, which is shortened as in evaluation.

        There the model continues behind the tag that closes the last evidence: up to it, all is prompt.
        """
        given = max((at + 2 for at, part in enumerate(parts) if isinstance(part, Evidence)), default=0)
        rest, end = parts[given:], self.prompts.turn_end
        written = sum(map(len, self.prompts.encode_parts(rest))) + 1
        chat = self.prompts.fit((*messages, assistant(*parts[:given])), self._budget(written))
        ids = list(self.prompts.build(chat[:-1], self.max_prompt_tokens).ids)
        labels = [-100] * len(ids)
        said = (*chat[-1].content, *rest)
        for part, encoded in zip(said, self.prompts.encode_parts(said), strict=True):
            ids += encoded
            labels += [-100] * len(encoded) if isinstance(part, Evidence) else encoded
        return {"input_ids": [*ids, end], "labels": [*labels, end]}

    def dpo(self, row: Preference) -> dict[str, list[int]]:
        """`prompt_ids`, `chosen_ids` and `rejected_ids` of trl's DPOTrainer."""
        chosen, rejected = self._completions(row.chosen, row.rejected)
        prompt = self._prompt(row.messages, max(len(chosen), len(rejected)))
        return {"prompt_ids": prompt, "chosen_ids": chosen, "rejected_ids": rejected}

    def _completions(self, *completions: str | Completion) -> list[list[int]]:
        """The ids of continuations, each with the end of the turn."""
        end = self.prompts.turn_end
        encoded = []
        for completion in completions:
            if isinstance(completion, Completion) and completion.token_ids[-1:] == (end,):
                encoded.append(list(completion.token_ids))
            else:
                text = completion if isinstance(completion, str) else completion.text
                encoded.append([*self.prompts.encode_text(text), end])
        return encoded

    def _prompt(self, messages: Sequence[Message], new_tokens: int) -> list[int]:
        return list(self.prompts.build(messages, self._budget(new_tokens)).ids)

    def _budget(self, new_tokens: int) -> int:
        """How long a prompt may be before `new_tokens` more."""
        if self.context is None:
            return self.max_prompt_tokens
        return min(self.max_prompt_tokens, self.context - new_tokens)


def tokens_of(rows: Sequence[dict[str, Any]]) -> int:
    """Tokens that one pass over encoded rows reads: of a preference, the prompt counts twice."""
    total = 0
    for row in rows:
        if "input_ids" in row:
            total += len(row["input_ids"])
        else:
            total += 2 * len(row["prompt_ids"]) + len(row["chosen_ids"]) + len(row["rejected_ids"])
    return total
