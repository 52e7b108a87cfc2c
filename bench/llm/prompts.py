"""From messages to token ids: the chat template, the one BOS rule, and the shortening of evidence.

Every engine that needs token ids gets them here, so a prompt is the same whichever engine runs it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from ragtrials.errors import RunFailure, UserError
from ragtrials.program import Evidence, Message, Part, Sampled, Token

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# Some templates print today's date into the prompt (`strftime_now`), which would give another prompt, and
# another score, every day. A macro of that name hides the function and answers with one fixed date.
_FIXED_DATE = (
    "{%- macro strftime_now(format) -%}{{ format | replace('%d', '26') | replace('%m', '07')"
    " | replace('%Y', '2024') | replace('%y', '24') | replace('%b', 'Jul') | replace('%B', 'July')"
    " | replace('%A', 'Friday') | replace('%a', 'Fri') | replace('%H', '12') | replace('%M', '00')"
    " | replace('%S', '00') }}{%- endmacro -%}"
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as the model reads it.

    Attributes:
        ids: The token ids, the template's and exactly one BOS (where the tokenizer uses one) included.
        dropped_tokens: How many tokens shorter it is than it would be with all its evidence.
    """

    ids: tuple[int, ...]
    dropped_tokens: int = 0


class PromptBuilder:
    """Turns chats into token ids with a model's own chat template.

    What messages say is text, never control: a string that spells one of the tokenizer's special
    tokens (`<|im_end|>` in a question) is broken up by a space, so it cannot end a turn or open one.
    All other text gives the very ids of `apply_chat_template(..., add_generation_prompt=True)`.

    A chat whose last turn is the assistant's is one that the model continues: that turn stays open, and its
    tokens stand behind the prompt as if the model had sampled them itself. Control tokens stand there as ids.

    Args:
        tokenizer: A tokenizer of transformers that knows character offsets (a "fast" one).
        model: What error messages call the model.

    Raises:
        UserError: The tokenizer has no offsets. That it has no chat template is an error when a chat comes.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, model: str) -> None:
        if not tokenizer.is_fast:
            raise UserError(
                f"model {model} has a tokenizer without character offsets: "
                "put a tokenizer.json into its folder"
            )
        self._tokenizer = tokenizer
        self._model = model
        self._bos: int | None = tokenizer.bos_token_id
        self._adds_bos = self._bos is not None and tokenizer("a").input_ids[:1] == [self._bos]
        special = {token for token in special_tokens(tokenizer).values() if token.strip()}
        longest_first = sorted(special, key=lambda token: (-len(token), token))
        self._special = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        self._specials = {name: index for index, name in special_tokens(tokenizer).items()}

    def build(self, messages: Sequence[Message], max_tokens: int) -> Prompt:
        """The prompt for a chat, with as much of its evidence as `max_tokens` tokens hold.

        If it does not fit, every piece of evidence is capped at the same number of tokens, the largest
        at which the prompt fits; shorter pieces stay whole, longer ones lose their end. Nothing else is
        ever shortened.

        Raises:
            RunFailure: The prompt does not fit without any evidence.
            UserError: The chat template refuses the messages.
        """
        return self._fitted(messages, max_tokens)[1]

    def fit(self, messages: Sequence[Message], max_tokens: int) -> list[Message]:
        """The chat whose ids `build` gives: with the evidence that the prompt holds, and no more.

        Raises:
            RunFailure, UserError: As `build`.
        """
        return self._fitted(messages, max_tokens)[0]

    def _fitted(self, messages: Sequence[Message], max_tokens: int) -> tuple[list[Message], Prompt]:
        messages = [self._plain(message) for message in messages]
        whole = self._encode(messages)
        if len(whole) <= max_tokens:
            return messages, Prompt(whole)
        evidence = [part.text for m in messages for part in m.content if isinstance(part, Evidence)]
        cuts = {text: self._cuts(text) for text in evidence}
        bare = self._encode(_capped(messages, cuts, 0))
        if len(bare) > max_tokens:
            raise RunFailure(
                f"a prompt has {len(bare)} tokens without any passage, but model {self._model} may read only "
                f"{max_tokens} here: raise --max-prompt-tokens, ask for fewer new tokens or use fewer shots"
            )
        cap = _largest_cap([len(cuts[text]) - 1 for text in evidence], max_tokens - len(bare))
        # Tokens can merge where texts meet, so the sum is a close guess; real counts have the last word.
        best = self._encode(_capped(messages, cuts, cap))
        while len(best) > max_tokens:  # ends at `bare`, if not before
            cap -= 1
            best = self._encode(_capped(messages, cuts, cap))
        while len(longer := self._encode(_capped(messages, cuts, cap + 1))) <= max_tokens:
            cap, best = cap + 1, longer
        return _capped(messages, cuts, cap), Prompt(best, len(whole) - len(best))

    def encode_text(self, text: str) -> tuple[int, ...]:
        """The ids of plain text that follows a prompt: no BOS, no special tokens."""
        return tuple(self._tokenizer(self._harmless(text), add_special_tokens=False).input_ids)

    @cached_property
    def turn_end(self) -> int:
        """The id of the token that ends the assistant's turn, as the chat template writes it; else the EOS.

        Raises:
            UserError: The template ends a turn with plain text, and the tokenizer has no end token.
        """
        if not self._tokenizer.chat_template:
            return self._eos()
        said = "Yes"
        chat = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": said}]
        rendered = self._render(chat, add_generation_prompt=False)
        after = rendered[rendered.rindex(said) + len(said) :]
        for token in self._tokenizer(after, add_special_tokens=False).input_ids:
            if token in special_tokens(self._tokenizer):
                return int(token)
        return self._eos()

    def _eos(self) -> int:
        if self._tokenizer.eos_token_id is None:
            raise UserError(
                f"model {self._model} has no token that ends a turn: it cannot be trained to stop"
            )
        return int(self._tokenizer.eos_token_id)

    def encode_parts(self, parts: Sequence[Part]) -> list[tuple[int, ...]]:
        """The ids of each part of what follows a prompt; each text is tokenised by itself.

        Raises:
            UserError: The model has no such control token.
        """
        encoded: list[tuple[int, ...]] = []
        for part in parts:
            if isinstance(part, Token):
                encoded.append((self.token_id(part.name),))
            elif isinstance(part, Sampled):
                encoded.append(part.ids)
            else:
                encoded.append(self.encode_text(part if isinstance(part, str) else part.text))
        return encoded

    def token_id(self, name: str) -> int:
        """The id of a control token.

        Raises:
            UserError: The model has none of that name.
        """
        if name not in self._specials:
            raise UserError(
                f"model {self._model} has no control token {name!r}: name it in the method's `tokens`, or "
                "pass a model that has it"
            )
        return self._specials[name]

    def _encode(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Render and tokenise; exactly one BOS where one is in use, and an assistant's last turn open."""
        if messages and messages[-1].role == "assistant":
            opened = self.encode_parts(messages[-1].content)
            return self._encode(messages[:-1]) + tuple(token for ids in opened for token in ids)
        if messages and messages[0].role == "plain":
            return self._encode_plain(messages)
        chat = [{"role": m.role, "content": self._harmless(m.text)} for m in messages]
        text = self._render(chat if self._takes_system else _system_into_user(chat))
        ids = tuple(self._tokenizer(text, add_special_tokens=False).input_ids)
        if self._bos is None:
            return ids
        written = 0  # how many the template itself wrote
        while written < len(ids) and ids[written] == self._bos:
            written += 1
        if written > 1:
            return ids[written - 1 :]
        return (self._bos, *ids) if written == 0 and self._adds_bos else ids

    def _encode_plain(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Text without a template, after the BOS where the tokenizer uses one."""
        if len(messages) > 1:
            raise ValueError("plain text stands alone: it is no turn of a chat")
        ids = self.encode_text(messages[0].text)
        return (self._bos, *ids) if self._bos is not None and self._adds_bos else ids

    @cached_property
    def _template(self) -> str:
        """The chat template, with one fixed date.

        Raises:
            UserError: The tokenizer has none.
        """
        if not self._tokenizer.chat_template:
            raise UserError(
                f"model {self._model} has no chat template: use an instruction-tuned model, or put a "
                "chat_template.jinja into its folder"
            )
        template = str(self._tokenizer.get_chat_template())
        return _FIXED_DATE + template if "strftime_now" in template else template

    def _render(self, chat: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        from jinja2 import TemplateError

        try:
            rendered: Any = self._tokenizer.apply_chat_template(
                chat,
                chat_template=self._template,
                add_generation_prompt=add_generation_prompt,
                tokenize=False,
            )
        except TemplateError as error:
            roles = ", ".join(message["role"] for message in chat)
            reason = " ".join(str(error).split())
            raise UserError(
                f"the chat template of model {self._model} refuses the turns [{roles}]: {reason}"
            ) from error
        return str(rendered)

    @cached_property
    def _takes_system(self) -> bool:
        """Whether a system turn may stand by itself; some templates forbid it (Gemma 2's) or drop it."""
        probe = "Follow me."
        try:
            return probe in self._render(
                [{"role": "system", "content": probe}, {"role": "user", "content": "Hello."}]
            )
        except UserError:
            return False

    def _plain(self, message: Message) -> Message:
        """The message with harmless evidence, so that cut positions are those of the text that is sent."""
        return replace(
            message,
            content=tuple(
                Evidence(self._harmless(part.text)) if isinstance(part, Evidence) else part
                for part in message.content
            ),
        )

    def _harmless(self, text: str) -> str:
        """The text with special tokens broken up by a space, and lone surrogates (no tokenizer takes
        them) replaced; nearly always the text itself."""
        if not text.isascii():
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        while self._special.search(text):  # again, as breaking one up can complete another
            text = self._special.sub(_broken, text)
        return text

    def _cuts(self, text: str) -> list[int]:
        """For n = 0, 1, …, all: how many characters the first n tokens cover without breaking one."""
        encoding = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        spans: list[tuple[int, int]] = encoding["offset_mapping"]
        # Tokens that share a character all name it, so the next token's start says what is complete.
        ends = [min(end, following[0]) for (_, end), following in pairwise(spans)]
        return [0, *accumulate(ends, max), len(text)] if spans else [0]


def special_tokens(tokenizer: PreTrainedTokenizerBase) -> dict[int, str]:
    """Id and spelling of every control token, whether the tokenizer has a name for it (EOS) or not."""
    named = dict(zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True))
    added = tokenizer.added_tokens_decoder.items()
    return named | {index: token.content for index, token in added if token.special}


def _broken(special: re.Match[str]) -> str:
    token = special[0]
    return f"{token[0]} {token[1:]}" if len(token) > 1 else " "


def _capped(messages: Sequence[Message], cuts: dict[str, list[int]], cap: int) -> list[Message]:
    """The messages with every piece of evidence cut after at most `cap` tokens."""

    def cut(part: Part) -> Part:
        if not isinstance(part, Evidence):
            return part
        ends = cuts[part.text]
        return Evidence(part.text[: ends[min(cap, len(ends) - 1)]])

    return [replace(message, content=tuple(cut(part) for part in message.content)) for message in messages]


def _largest_cap(lengths: Sequence[int], budget: int) -> int:
    """The largest c for which `sum(min(length, c))` is at most `budget`; `budget` is below `sum(lengths)`."""
    left = budget
    for index, length in enumerate(sorted(lengths)):
        remaining = len(lengths) - index
        if length * remaining > left:
            return left // remaining
        left -= length
    return max(lengths, default=0)


def _system_into_user(chat: list[dict[str, str]]) -> list[dict[str, str]]:
    """The chat with each system turn put before the text of the turn that follows it."""
    merged: list[dict[str, str]] = []
    pending = ""
    for message in chat:
        if message["role"] == "system":
            pending += message["content"] + "\n\n"
        else:
            merged.append({"role": message["role"], "content": pending + message["content"]})
            pending = ""
    if pending:
        merged.append({"role": "user", "content": pending.strip()})
    return merged
