"""The passages that are searched while training: those of the training questions."""

from __future__ import annotations

from pathlib import Path

import pytest
from dataset_files import LAYOUTS, PASSAGES, POOLED, made_up_folder, put, write_corpus, write_split
from fakes import hotpot_folder

from ragtrials.conformance import check_task
from ragtrials.data import Corpus
from ragtrials.errors import UserError
from ragtrials.registry import TASKS
from ragtrials.task import Task
from ragtrials.tasks.hotpotqa import HotpotQA
from ragtrials.tasks.musique import MuSiQue
from ragtrials.tasks.twowiki import TwoWiki

POOLED_IN_TRAINING = [name for name in POOLED if LAYOUTS[name].trains]


def made_up(task: str, folder: Path) -> Task:
    return TASKS.load(task)(made_up_folder(folder, task))


@pytest.mark.parametrize("name", POOLED_IN_TRAINING)
def test_a_pool_for_training_has_the_paragraphs_of_training_questions_alone(
    name: str, tmp_path: Path
) -> None:
    task = made_up(name, tmp_path)
    corpus = task.training_corpus()
    assert corpus.name == f"{name}-train-pool"
    assert corpus.digest != task.corpus().digest
    texts = [passage.text for passage in corpus if passage.title == "Bob"]
    assert texts == [f"Bob knows {n}." for n in range(100, 120)]
    assert len({passage.id for passage in corpus}) == len(list(corpus)) == 22


@pytest.mark.parametrize("name", POOLED_IN_TRAINING)
@pytest.mark.parametrize("split", ["train", "validation"])
def test_gold_passages_of_training_questions_can_be_found(name: str, split: str, tmp_path: Path) -> None:
    task = made_up(name, tmp_path)
    known = {passage.id for passage in task.training_corpus()}
    examples = task.examples(split)
    assert examples
    assert all(len(example.supporting) == 2 and known.issuperset(example.supporting) for example in examples)
    evaluated = {passage.id for passage in task.corpus()}
    assert not any(evaluated.issuperset(example.supporting) for example in examples)


@pytest.mark.parametrize("kind", [MuSiQue, TwoWiki])
def test_a_corpus_file_serves_training_too(kind: type[Task], tmp_path: Path) -> None:
    task = made_up(kind.name, tmp_path)
    write_corpus(tmp_path, kind.name)
    key = task.examples("train")[0].id
    put(tmp_path, f"{kind.name}/qrels.tsv", f"qid\tdocid\n{key}\tp1\n")
    corpus = task.training_corpus()
    assert (corpus.name, [p.id for p in corpus]) == (f"{kind.name}-local-pool", [p["id"] for p in PASSAGES])
    assert [example.supporting for example in task.examples("train")[:2]] == [("p1",), ()]


@pytest.mark.parametrize("name", [name for name in LAYOUTS if name not in (*POOLED_IN_TRAINING, "fever")])
def test_other_tasks_train_on_the_corpus_that_they_evaluate_on(name: str, tmp_path: Path) -> None:
    if name == "asqa":
        made_up_folder(tmp_path, "ambigqa")
    task = made_up(name, tmp_path)
    assert list(task.training_corpus()) == list(task.corpus())


def test_a_task_without_a_corpus_has_none_for_training(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        made_up("fever", tmp_path).training_corpus()


def test_a_missing_training_file_is_named(tmp_path: Path) -> None:
    write_split(tmp_path, "hotpotqa", "dev", [LAYOUTS["hotpotqa"].record(1)])
    with pytest.raises(UserError, match=r"^[^\n]*hotpotqa/train\.json[^\n]*$"):
        list(HotpotQA(tmp_path).training_corpus())


class Astray(HotpotQA):
    """Would search the paragraphs of the development questions while training."""

    def training_corpus(self) -> Corpus:
        return self.corpus()


def test_conformance_finds_gold_passages_that_training_cannot_find(tmp_path: Path) -> None:
    folder = hotpot_folder(tmp_path)
    assert check_task(HotpotQA(folder)) == []
    found = check_task(Astray(folder))
    assert len(found) == 20  # 18 trained and 2 held-out questions, one line for each
    assert all("is not in the training corpus" in problem for problem in found)


@pytest.mark.data
@pytest.mark.parametrize("name", POOLED_IN_TRAINING)
def test_real_training_questions_have_their_passages(name: str, data_dir: Path) -> None:
    task = TASKS.load(name)(data_dir)
    corpus = {passage.id: passage.text for passage in task.training_corpus()}
    examples = [*task.examples("train"), *task.examples("validation")]
    assert all(identity in corpus for example in examples for identity in example.supporting)
    assert sum(bool(example.supporting) for example in examples) >= 0.95 * len(examples)
    texts = "\n".join(corpus.values()).lower()
    answered = [e for e in examples if any(alias.lower() in texts for alias in e.aliases)]
    closed = [e for e in examples if e.target.lower() in ("yes", "no")]
    assert len(answered) >= 0.95 * (len(examples) - len(closed))
