"""The settings of a project: where they are looked for, what they may say, and the mistakes in them."""

from pathlib import Path

import pytest
from command_calls import called
from sonnx.spec.project import SettingsError, Waiver, read, settings

WAIVER = """[[waivers]]
rule = "R1"
place = "*"
reason = "r"
who = "w"
until = 2030-01-31
"""


def _file(folder: Path, text: str, name: str = "sonnx.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def test_the_nearest_file_counts_and_paths_are_from_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _file(tmp_path, 'rules = "onnx"')
    _file(tmp_path / "a", "[tool.sonnx]\nmodels = 'm/*.onnx'\noutput = 'r.json'", "pyproject.toml")
    _file(tmp_path / "a" / "b", "[project]\nname = 'other'", "pyproject.toml")
    (tmp_path / "a" / "b" / "c").mkdir()
    monkeypatch.chdir(tmp_path / "a" / "b" / "c")
    found = settings()
    assert found.file == tmp_path / "a" / "pyproject.toml"
    assert found.texts("models") == [str(tmp_path / "a" / "m/*.onnx")]
    assert found.defaults()["certify"]["output"] == str(tmp_path / "a" / "r.json")
    monkeypatch.chdir(tmp_path / "a")
    assert settings().texts("models") == ["m/*.onnx"]
    monkeypatch.chdir(tmp_path)
    assert settings().texts("rules") == ["onnx"]


def test_waivers_name_the_line_where_they_stand(tmp_path: Path) -> None:
    assert read(_file(tmp_path, WAIVER + WAIVER)).waivers == (
        Waiver("R1", "*", "r", "w", "2030-01-31", "*", "sonnx.toml:1"),
        Waiver("R1", "*", "r", "w", "2030-01-31", "*", "sonnx.toml:7"),
    )


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("rules = 3", 1, "rules is a text or a list of texts, not 3"),
        ('strict = "yes"', 1, "strict is true or false, not 'yes'"),
        ("timeout = 0", 1, "timeout is a number above 0"),
        ("jobs = true", 1, "jobs is an integer from 1"),
        ('\nrule = "onnx"', 2, "there is no setting 'rule'"),
        ('[sizes]\nN = "1-2"', 1, "sizes is a table of sizes"),
        (WAIVER + WAIVER.replace('who = "w"\n', ""), 7, "the waiver does not say its who"),
        (WAIVER + WAIVER.replace("2030-01-31", '"soon"'), 12, "the waiver says 'soon' as its until"),
        (WAIVER + WAIVER.replace('"r"', '" "'), 10, "the waiver says no text as its reason"),
        (WAIVER + WAIVER.replace("place", "places"), 9, "the waiver has no key 'places'"),
        (WAIVER.replace('"R1"', "1"), 2, "the waiver says no text as its rule"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    file = _file(tmp_path, text)
    with pytest.raises(SettingsError) as raised:
        read(file)
    assert str(raised.value).startswith(f"{file}:{line}: {message}")


def test_a_mistake_ends_the_command_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("sonnx.toml", "rules = ["), ("pyproject.toml", "[tool.sonnx]\nrules = 1")):
        file = _file(tmp_path, text, name)
        code, out, err = called(capsys, "certify", "model.onnx")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert name in err
        file.unlink()
    _file(tmp_path, "")
    _file(tmp_path, "[tool.sonnx]", "pyproject.toml")
    assert "keep one of them" in called(capsys, "certify", "model.onnx")[2]


def test_what_the_command_line_says_goes_before_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    called(capsys, "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    _file(tmp_path, 'models = "examples/any-size.onnx"\nstrict = true\nrules = ["domain"]\n[sizes]\nH = "3.."\nW = 3\n')
    code, out, _ = called(capsys, "certify", "-q")
    assert (code, out) == (0, "any-size.onnx CONFORMS to domain (strict) for H >= 3, W = 3.\n")
    code, out, _ = called(capsys, "certify", "examples/working-group.onnx", "--rules", "onnx", "-q")
    assert (code, out) == (0, "working-group.onnx CONFORMS to onnx (strict).\n")
