"""Self-RAG: a model that says when it needs passages, and judges what it makes of each (Asai et al. 2023).

The section numbers are those of the paper (arXiv:2310.11511).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ragtrials.data import Passage
from ragtrials.method import Method, Paper
from ragtrials.methods._closed_book import closed_book_answers, mostly_right
from ragtrials.methods._prompts import clean_answer
from ragtrials.methods._self_config import SelfConfig
from ragtrials.methods._self_data import GeneratorData, critic_inquiries
from ragtrials.methods._self_labels import (
    CRITIC,
    LABELLER,
    Labeller,
    by_critic,
    by_model,
    by_rules,
    lessons,
    reusing,
)
from ragtrials.methods._self_profiles import PROFILES
from ragtrials.methods._self_prompts import generator_prompt, passage_part
from ragtrials.methods._self_scores import (
    further_share,
    joined,
    probabilities,
    retrieval_share,
    segment_score,
)
from ragtrials.methods._self_tokens import ALL, IS_REL, IS_SUP, IS_USE, NO_RETRIEVAL, RETRIEVAL, RETRIEVE
from ragtrials.program import Completion, Generate, Part, Program, Sampled, Token, assistant, retrieve
from ragtrials.training.stages import sft

if TYPE_CHECKING:
    from ragtrials.training.run import TrainRun

GENERATOR = "generator"
WATCHED = (*RETRIEVE, *IS_REL, *IS_SUP, *IS_USE)
WISHES = (RETRIEVAL, NO_RETRIEVAL)
"""What ends a segment of a long answer, beside the end of the turn."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer on its way: what was said so far, what it scores, and whether it goes on.

    Attributes:
        parts: The open turn: passages, reflection tokens and segments.
        text: The segments alone.
        score: The product of the segments' scores.
        open: Whether another segment with a passage follows.
    """

    parts: tuple[Part, ...]
    text: str
    score: float
    open: bool


class SelfRAG(Method):
    """Retrieve if need be, continue with each passage by itself, and keep the best by reflection tokens."""

    name = "self_rag"
    roles = (CRITIC, GENERATOR)
    trains = True
    evaluation_settings = ("mode", "delta", "weights", "decoding", "beam", "depth", "aggregate")
    Config = SelfConfig
    PROFILES: ClassVar[Mapping[str, SelfConfig]] = PROFILES
    paper = Paper(
        title="Self-RAG: Learning to Retrieve, Generate, and Critique through Self-Reflection",
        url="arXiv:2310.11511",
        # The 7B model with Contriever and up to ten passages; accuracy is a gold string in the output.
        reported={"popqa/acc": 0.549, "triviaqa/acc": 0.664},
        deviations=(
            "trained on the task's own training questions, whose answers are one segment; the paper's "
            "145,619 rows are instructions with long answers, cut into sentences",
            "labels for the critic come from rules over gold answers and passages, or from an open model; "
            "the paper buys them from GPT-4",
            "critic and generator are adapters on one model; the paper tunes all weights of two models",
            "our own prompt wording for the critic and, but for the profile `released`, the generator",
            "each passage is masked by itself; the released code masks all from the first to the last",
            "delta is compared with probabilities; the released code takes logarithms, which inverts it",
            "the long form searches once, with the question, as the released code does",
        ),
    )
    config: SelfConfig

    @property
    def tokens(self) -> tuple[str, ...]:
        return ALL

    # Inference (§3.3, Algorithm 1) ----------------------------------------------------------------------

    def answer(self, question: str) -> Program:
        passages: Sequence[Passage] = ()
        if (yield from self._retrieves(question)):
            passages = yield from retrieve(question, self.config.k)
        if not passages:
            reply = yield self._continue(question, (Token(NO_RETRIEVAL),))
            return reply.text.strip() if self.config.decoding == "long" else clean_answer(reply.text)
        if self.config.decoding == "long":
            return (yield from self._long(question, passages))
        return (yield from self._short(question, passages))

    def _retrieves(self, question: str) -> Generator[Generate, Completion, bool]:
        """Whether the model wants passages: p(Retrieval) against p(No Retrieval)."""
        if self.config.mode != "adaptive":
            return self.config.mode == "always"
        prompt = generator_prompt(question, self.config.prompt)
        first = yield Generate(prompt, GENERATOR, max_new_tokens=1, watch=WATCHED)
        return retrieval_share(probabilities(first, 0, WATCHED)) > self.config.delta

    def _continue(
        self, question: str, parts: Sequence[Part], ends: tuple[str, ...] = (), written: int = 0
    ) -> Generate:
        """What the model says behind the parts of its turn, of whose last segment so much is written."""
        return Generate(
            (*generator_prompt(question, self.config.prompt), assistant(*parts)),
            GENERATOR,
            max_new_tokens=self.config.max_new_tokens - written,
            logprobs=True,
            watch=WATCHED,
            ends=ends,
        )

    def _short(self, question: str, passages: Sequence[Passage]) -> Program:
        """One segment for each passage, side by side; the best one, or the answer with the largest sum."""
        segments = yield [self._continue(question, self._opened(passage)) for passage in passages]
        scores: dict[str, float] = {}
        for segment in segments:
            answer = clean_answer(segment.text)
            score = segment_score(segment, WATCHED, self.config.weights)
            if self.config.aggregate == "closed":
                scores[answer] = scores.get(answer, 0.0) + score
            else:
                scores[answer] = max(scores.get(answer, score), score)
        return max(scores, key=lambda answer: scores[answer])

    def _long(self, question: str, passages: Sequence[Passage]) -> Program:
        """A beam over segments: each draft goes on with each passage, and the best drafts stay (§3.3)."""
        drafts = [Draft((), "", 1.0, open=True)]
        for _ in range(self.config.depth):
            going = [draft for draft in drafts if draft.open]
            if not going:
                break
            tried = [(draft, (*draft.parts, *self._opened(p))) for draft in going for p in passages]
            segments = yield from self._segments(question, [parts for _, parts in tried])
            grown = [self._grown(*one, segment) for one, segment in zip(tried, segments, strict=True)]
            finished = [draft for draft in drafts if not draft.open]
            drafts = sorted(finished + grown, key=lambda draft: -draft.score)[: self.config.beam]
        return drafts[0].text

    def _segments(
        self, question: str, begun: Sequence[tuple[Part, ...]]
    ) -> Generator[list[Generate], Sequence[Completion], list[Completion]]:
        """A segment behind each passage, up to where the model wants others.

        A [No Retrieval] that stands does not end a segment: what follows it needs no passage of its own.
        """
        segments = list((yield [self._continue(question, parts, WISHES) for parts in begun]))
        while unfinished := [n for n, segment in enumerate(segments) if self._stands(segment)]:
            rest = yield [
                self._continue(
                    question,
                    (*begun[n], Sampled(segments[n].token_ids, segments[n].text)),
                    WISHES,
                    len(segments[n].token_ids),
                )
                for n in unfinished
            ]
            for n, further in zip(unfinished, rest, strict=True):
                segments[n] = joined(segments[n], further)
        return segments

    def _stands(self, segment: Completion) -> bool:
        """Whether a segment ended with a [No Retrieval] that delta does not turn, and may be longer."""
        ended = _wish(segment) == NO_RETRIEVAL and not self._further(segment)
        return ended and len(segment.token_ids) < self.config.max_new_tokens

    def _further(self, segment: Completion) -> bool:
        """Whether more passages are wanted: the model says so, or nearly says so where it says otherwise."""
        wish = _wish(segment)
        return wish == RETRIEVAL or (
            wish == NO_RETRIEVAL and further_share(probabilities(segment, -1, WATCHED)) > self.config.delta
        )

    def _grown(self, draft: Draft, parts: tuple[Part, ...], segment: Completion) -> Draft:
        """A draft with one more segment; it goes on if more passages are wanted."""
        further = self._further(segment)
        # The next passage has a [Retrieval] of its own.
        said = Sampled(segment.token_ids[:-1] if further else segment.token_ids, segment.text)
        text = f"{draft.text} {segment.text.strip()}".strip()
        score = draft.score * segment_score(segment, WATCHED, self.config.weights)
        return Draft((*parts, said), text, score, further)

    def _opened(self, passage: Passage) -> tuple[Part, ...]:
        """The beginning of a segment from a passage."""
        return (Token(RETRIEVAL), *passage_part(passage, self.config.passage_words))

    # Training: the critic, then the generator on what it labels (§3.2) ----------------------------------

    @classmethod
    def trained_roles(cls, config: SelfConfig) -> tuple[str, ...]:
        return cls.roles if config.labels.critic else (GENERATOR,)

    def train(self, run: TrainRun) -> None:
        config = self.config
        if config.labels.model is not None:
            run.statistics["labeller"] = dict(run.describe(config.labels.model))
        traces = run.rollout("retrieved", self._fetch, run.examples)
        found = {trace.example_id: trace.retrieved for trace in traces}
        own: Mapping[str, Sequence[str]] = {}
        if config.labels.critic or config.labels.labeller == "rules":
            own = closed_book_answers(run, LABELLER, run.examples, self.shown, config.max_new_tokens)
        label = self._labeller(run, own)
        if config.labels.critic:
            inquiries = critic_inquiries(run.examples, found, own, config.labels, run.seed)
            labels = label("labels", inquiries)
            run.statistics["critic"] = _counts(labels)
            sft(run, "critic", CRITIC, lessons(inquiries, labels, config.passage_words), config.critic)
            label = by_critic(run, config.passage_words)
            if config.labels.reuse:
                known = zip(inquiries, labels, strict=True)
                label = reusing({inquiry.key: said for inquiry, said in known}, label)
        data = GeneratorData(label, config.mix, config.prompt, config.passage_words, run.seed)
        rows = data.rows(run.examples, found)
        run.statistics["generator"] = data.statistics
        sft(run, "generator", GENERATOR, rows, config.generator)

    def _fetch(self, question: str) -> Program:
        yield from retrieve(question, self.config.k)
        return ""

    def _labeller(self, run: TrainRun, answers: Mapping[str, Sequence[str]]) -> Labeller:
        """Who labels what the critic learns from; rules look at the untrained model's own answers."""
        labels = self.config.labels
        if labels.labeller == "model":
            return by_model(run, self.config.passage_words, labels.model)
        known = [e.id for e in run.examples if mostly_right(run, answers[e.id], e, "em")]
        return by_rules(frozenset(known), lambda answer, example: run.scores(answer, example)["f1"])


def _wish(segment: Completion) -> str | None:
    """What ended a segment, if it was a wish for passages or for none."""
    last = segment.marks[-1] if segment.marks else None
    ended = last is not None and last.place == len(segment.token_ids) - 1 and last.name in WISHES
    return last.name if last is not None and ended else None


def _counts(labels: Sequence[str | None]) -> dict[str, Any]:
    """How often each label was given."""
    return {name or "unread": labels.count(name) for name in dict.fromkeys(labels)}
