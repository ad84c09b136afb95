"""What a vault begins with."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agent_bus.notes import names, template
from tests.notes import vault_check as check

SHIPPED = template.shipped()
LANGUAGES = template.LANGUAGES
NAME = "09_AgentSync"
TEXT = {"description", "displayName", "name", "text", "label", "title"}
"""Keys whose values are for people."""


def bones(path: str, text: str) -> Any:
    """What two languages of a file must have in common."""
    if path.endswith(".base"):
        return _bones(check.load_yaml(text))
    if path.endswith(".canvas"):
        return _bones(json.loads(text))
    properties, body = check.split_note(text)
    lines = list(check.outside_fences(body))
    ids = [found[1] for line in lines if (found := check.BLOCK_ID.search(line))]
    regions = [line for line in lines if check.MARKER.match(line)]
    kept = {key: value for key, value in properties.items() if key not in ("aliases", "ab_lang")}
    return kept, list(properties), ids, regions, [line.split(" ")[0] for line in lines if line.startswith("#")]


def _bones(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: "" if key in TEXT else _bones(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_bones(inner) for inner in value]
    return re.sub(r'"[^"]*"', '""', value) if isinstance(value, str) and "if(" in value else value


def test_the_validator_refuses_bad_files() -> None:
    assert check.self_test() == []


@pytest.mark.req("vault:44")
@pytest.mark.parametrize("language", LANGUAGES)
def test_obsidian_takes_the_template_and_nothing_is_in_it_that_must_not_be(tmp_path: Path, language: str) -> None:
    files = {f"{NAME}/{path}": data for path, data in SHIPPED.files(language, NAME).items()}
    for path, data in (files | SHIPPED.settings(NAME)).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
        assert b"__BUS__" not in data
        assert [names.fault(part) for part in path.removeprefix(".").split("/") if names.fault(part)] == []
    assert check.check_tree(tmp_path, template=True) == []


@pytest.mark.req("vault:44")
def test_both_languages_have_the_same_files_properties_block_ids_and_views() -> None:
    english, japanese = (SHIPPED.files(language, NAME) for language in LANGUAGES)
    assert list(english) == list(japanese)
    for path in english:
        assert bones(path, english[path].decode()) == bones(path, japanese[path].decode()), path


@pytest.mark.req("vault:15", "vault:24")
def test_only_properties_of_ours_are_used_and_never_the_birth_time_of_a_file() -> None:
    types = json.loads(SHIPPED.settings(NAME)[".obsidian/types.json"])["types"]
    for language in LANGUAGES:
        for path, data in SHIPPED.files(language, NAME).items():
            text = data.decode()
            assert "file.ctime" not in text
            assert set(re.findall(r"\bab_[a-z]+\b", text)) <= set(types), path
            assert set(re.findall(r"note\.(\w+)", text)) <= {name for name in types if name.startswith("ab_")}, path


def test_the_manifest_knows_every_file_that_is_shipped() -> None:
    for language in LANGUAGES:
        for path, data in SHIPPED.files(language, "Bus 日本").items():
            assert SHIPPED.knows(path, data, "Bus 日本"), "run scripts/gendocs"


@pytest.mark.parametrize(
    "name",
    ["a:b", "x#1", "con", "NUL.x", ".hidden", "-x", "end.", "end ", "a/b", "a%%b", "🚌", "カ\u3099", "あ" * 41, ""],
)
def test_a_name_that_some_system_cannot_take_is_none(name: str) -> None:
    assert names.fault(name)


def test_names_that_every_system_takes_are_good() -> None:
    assert [names.fault(name) for name in ("09_AgentSync", "08_Bus", "エージェント", "My bus", "a.b")] == [""] * 5
