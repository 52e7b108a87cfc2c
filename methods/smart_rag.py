"""SmartRAG: one policy that decides whether to retrieve, writes the query, and answers (Gao et al. 2024).

The section numbers are those of the paper (arXiv:2410.18141).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from math import exp
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from ragtrials.data import Example, Passage
from ragtrials.method import Method, Paper
from ragtrials.methods._prompts import clean_answer
from ragtrials.methods._smart_actions import ANSWER, SEARCH, Action, Tag, given_tag, parse_action
from ragtrials.methods._smart_config import SmartConfig
from ragtrials.methods._smart_observations import observation_parts
from ragtrials.methods._smart_profiles import PROFILES
from ragtrials.methods._smart_rewards import correctness, episode_rewards
from ragtrials.methods._smart_warm_up import WarmUpData
from ragtrials.program import (
    Completion,
    Evidence,
    Generate,
    Message,
    Program,
    Score,
    Step,
    Trace,
    assistant,
    retrieve,
    user,
)
from ragtrials.seeding import derive_seed
from ragtrials.training.episodes import Judgement
from ragtrials.training.ppo_stage import ppo

if TYPE_CHECKING:
    from ragtrials.training.run import TrainRun

POLICY = "policy"
Found: TypeAlias = list[tuple[Passage, ...]]
"""What each retrieval of a question found."""


class SmartRAG(Method):
    """Search or answer; a search costs, and PPO learns when it is worth that."""

    name = "smart_rag"
    roles = (POLICY,)
    trains = True
    evaluation_settings = ("gate", "threshold", "rate")
    Config = SmartConfig
    PROFILES: ClassVar[Mapping[str, SmartConfig]] = PROFILES
    paper = Paper(
        title="SmartRAG: Jointly Learn RAG-Related Tasks From the Environment Feedback",
        url="arXiv:2410.18141",
        # Llama-2-7B with four web snippets, over its own split of 713 questions.
        reported={"popqa/em": 0.4432},
        deviations=(
            "our own prompt wording",
            "a retriever over the task's corpus; the paper asks a web search that no longer exists",
            "when the quota is used up the answer's tag is written for the policy, as in Algorithm 1; the "
            "released code drops the first word of whatever comes",
            "the warm-up's labels are a reconstruction: what the untrained model answers by itself is shown "
            "as an answer, else as a search, in equal parts (appendix A.2 was not at hand)",
            "the warm-up's queries come from rules or from the model, not from GPT-3.5",
            "with a quota above 1 the warm-up searches again where an observation lacks the answer",
            "PPO's usual pessimistic minimum; the released code keeps its clipped branch alone",
            "advantages are whitened over the whole buffer, not over a minibatch",
            "gamma is 1: the released 0.99 for each token makes a search cost nearly twice its alpha",
            "the critic has an adapter of its own under a linear head; in the released code it is a copy of "
            "the model",
            "greedy decoding; the released code searches with four beams",
        ),
    )
    config: SmartConfig

    # The decision process (§3, Algorithm 1) -------------------------------------------------------------

    def answer(self, question: str) -> Program:
        found: Found = []
        while True:
            used_up = len(found) == self.config.quota
            tag = ANSWER if used_up else (yield from self._decide(question, found))
            action = yield from self._act(question, found, tag)
            if action.tag != SEARCH:
                return clean_answer(action.payload)
            found.append((yield from retrieve(action.payload, self.config.k)))

    def _decide(self, question: str, found: Found) -> Generator[Score, Completion, Tag | None]:
        """What is to be done next; None leaves it to what the policy writes."""
        config = self.config
        if config.gate == "always":
            return SEARCH
        if config.gate == "never":
            return ANSWER
        if (
            config.gate == "random"
        ):  # drawn by the question: a higher rate retrieves all that a lower one does
            return SEARCH if derive_seed("gate", question, len(found)) < config.rate * 2**63 else ANSWER
        if config.threshold is None:
            return None
        scored = yield Score(self._state(question, found), SEARCH, role=POLICY)
        assert scored.logprobs is not None
        return SEARCH if exp(sum(scored.logprobs)) > config.threshold else ANSWER  # §4.1

    def _act(self, question: str, found: Found, tag: Tag | None) -> Generator[Generate, Any, Action]:
        """The policy's action; if the tag is given it writes the rest."""
        state = self._state(question, found)
        reply = yield Generate(
            state if tag is None else (*state, assistant(tag)),
            role=POLICY,
            max_new_tokens=self.config.action_tokens,
            stop=("\n",),
        )
        return self._action(tag, reply.text)

    def _action(self, tag: Tag | None, text: str) -> Action:
        return parse_action(text, self.config.strict) if tag is None else Action(tag, text.strip())

    def _state(self, question: str, found: Found) -> tuple[Message, ...]:
        """The prompt, rendered anew for each action: the question and all observations (Eq. 1)."""
        observations: list[str | Evidence] = []
        for passages in found:
            observations += [
                "\n\nObservation: ",
                *observation_parts(passages, self.config.passage_words),
            ]
        return (
            user(
                "Answer the question if you know the answer. If you do not, say what to search for; you will "
                "be shown what is found, and answer from it.",
                f"\n\nQuestion: {question}",
                *observations,
                f"\n\nWrite one line, either of these:\n{ANSWER} the answer, in a few words\n"
                f"{SEARCH} words to search for",
            ),
        )

    # Training: a warm-up by demonstrations, then PPO (§3.2, §3.3) ---------------------------------------

    def train(self, run: TrainRun) -> None:
        learner = SmartRAG(replace(self.config, gate="policy", threshold=None))
        WarmUpData(run, POLICY, self.config, self.shown).train(learner.answer)
        ppo(run, "ppo", {POLICY: self.roles}, learner.answer, self._judge(run), self.config.ppo)

    def _judge(self, run: TrainRun) -> Callable[[Trace, Example], Judgement]:
        """The reward of each action (Eq. 5), and what the log tells of an episode."""
        config = self.config

        def judge(trace: Trace, example: Example) -> Judgement:
            scores = run.scores(trace.answer, example)
            tags = [self._tag(step) for step in trace.generations]
            correct = correctness(scores, config.correct, bool(run.choices))
            rewards = episode_rewards(tags, correct, config.alpha, config.malformed)
            searched = tags[0] == SEARCH
            return Judgement(
                sum(rewards),
                rewards,
                {
                    "f1": scores["f1"],
                    "searched": float(searched),
                    "searches": float(tags.count(SEARCH)),
                    "malformed": float(None in tags),
                    f"f1/{'searched' if searched else 'unsearched'}": scores["f1"],
                },
            )

        return judge

    def _tag(self, step: Step) -> Tag | None:
        """What a step of a trace decided."""
        assert isinstance(step.request, Generate)
        assert isinstance(step.result, Completion)
        return self._action(given_tag(step.request), step.result.text).tag
