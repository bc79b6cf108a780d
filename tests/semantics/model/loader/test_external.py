"""External data: only plain files in the model's own folder, and only ranges inside them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from sonnx.semantics.errors import ModelError
from sonnx.semantics.model.graph import Storage
from sonnx.semantics.model.loader import values
from sonnx.semantics.model.loader.values import checked_dims, locate, open_external
from tables import table

MODELS = Path(__file__).parents[4] / ".." / "shared" / "models"
CASES = MODELS.resolve() / "invalid" / "onnx-tests" / "external_data"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder with one data file of 100 bytes, beside a file that it must not reach."""
    (tmp_path / "secret.bin").write_bytes(b"s" * 100)
    inside = tmp_path / "model"
    (inside / "sub").mkdir(parents=True)
    (inside / "data.bin").write_bytes(bytes(range(100)))
    (inside / "sub" / "data.bin").write_bytes(bytes(50))
    return inside


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that os.open was asked for, in order."""
    names: list[str] = []
    real: Callable[..., int] = os.open

    def recorded(path: str | bytes | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        names.append(os.fsdecode(path))
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", recorded)
    monkeypatch.setattr(os, "supports_dir_fd", {recorded})
    return names


@pytest.mark.parametrize(
    ("entries", "needed", "expected"),
    [
        ({"location": "data.bin"}, None, Storage("data.bin", 0, 100)),
        ({"location": "data.bin", "offset": "60"}, 40, Storage("data.bin", 60, 40)),
        ({"location": "data.bin", "offset": "60", "length": "8"}, 8, Storage("data.bin", 60, 8)),
        ({"location": "data.bin", "offset": "100", "length": "0"}, 0, Storage("data.bin", 100, 0)),
        ({"location": "sub/data.bin", "checksum": "0aF" + "0" * 37}, 50, Storage("sub/data.bin", 0, 50)),
        ({"location": "./sub/./data.bin", "length": "050"}, 50, Storage("sub/data.bin", 0, 50)),
    ],
)
def test_a_range_inside_a_plain_file_is_located(
    folder: Path, entries: dict[str, str], needed: int | None, expected: Storage
) -> None:
    assert locate(folder, "W", entries, needed) == expected
    assert locate(folder, "W", list(entries.items()), needed) == expected


DATA = {"location": "data.bin"}
BAD_ENTRIES = {
    "no location": ({"offset": "0"}, "name no file (key location)"),
    "unknown key": (DATA | {"basepath": "/"}, 'have the key "basepath", which ONNX does not define'),
    "negative offset": (DATA | {"offset": "-1"}, 'have the offset "-1", no decimal number'),
    "negative length": (DATA | {"length": "-4"}, 'have the length "-4", no decimal number'),
    "signed": (DATA | {"length": "+4"}, 'have the length "+4", no decimal number'),
    "spaced": (DATA | {"length": " 4"}, 'have the length " 4", no decimal number'),
    "grouped": (DATA | {"length": "1_0"}, 'have the length "1_0", no decimal number'),
    "other digits": (DATA | {"length": "٤"}, "no decimal number of bytes"),
    "hexadecimal": (DATA | {"offset": "0x4"}, "no decimal number of bytes"),
    "no number": (DATA | {"length": ""}, 'have the length "", no decimal number'),
    "huge": (DATA | {"length": "9" * 5000}, "no decimal number of bytes"),
    "offset past the end": (DATA | {"offset": "101"}, "start at byte 101"),
    "length past the end": (DATA | {"length": "101"}, "end at byte 101"),
    "range past the end": (DATA | {"offset": "93", "length": "8"}, "end at byte 101"),
    "too short": (DATA | {"length": "7"}, "have 7 bytes, its type and shape need 8"),
    "open end": (DATA | {"offset": "4"}, "have 96 bytes, its type and shape need 8"),
    "long checksum": (DATA | {"length": "8", "checksum": "f" * 41}, "have a checksum that is no SHA-1"),
    "checksum": (DATA | {"length": "8", "checksum": "f" * 39}, "have a checksum that is no SHA-1"),
}


@pytest.mark.parametrize("name", BAD_ENTRIES)
def test_a_bad_entry_is_refused_in_one_line(name: str, folder: Path) -> None:
    entries, message = BAD_ENTRIES[name]
    with pytest.raises(ModelError, match=re.escape(message)) as caught:
        locate(folder, "W\n\x1b[2J", entries, 8)
    text = str(caught.value)
    assert text.startswith(r'external data of tensor "W\u000a\u001b[2J"')
    assert text.isascii() and text.isprintable() and len(text) < 300


def test_a_key_given_twice_is_refused(folder: Path) -> None:
    with pytest.raises(ModelError, match='have the key "location" twice'):
        locate(folder, "W", [("location", "data.bin"), ("location", "data.bin")], None)


BAD_NAMES = {
    "": "names no file",
    ".": "names no file",
    "sub/": "names no file",
    "sub//data.bin": "names no file",
    "/etc/passwd": "is an absolute path",
    "//host/share": "is an absolute path",
    "\\\\host\\share": "is an absolute path",
    "C:data.bin": "is an absolute path",
    "c:/data.bin": "is an absolute path",
    "../secret.bin": "leads out of the model's folder",
    "sub/../data.bin": "leads out of the model's folder",
    "..": "leads out of the model's folder",
    "sub\\data.bin": "has a NUL or a backslash",
    "data.bin\0.txt": "has a NUL or a backslash",
}


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_is_no_path_downwards_is_refused_unopened(name: str, folder: Path, opened: list[str]) -> None:
    for attempt in (lambda: locate(folder, "W", {"location": name}, None), lambda: open_external(folder, name)):
        with pytest.raises(ModelError, match=BAD_NAMES[name]):
            attempt()
    assert opened == []


def link_file(folder: Path) -> str:
    (folder / "link.bin").symlink_to(folder.parent / "secret.bin")
    return "link.bin"


def link_inside(folder: Path) -> str:
    (folder / "link.bin").symlink_to("data.bin")
    return "link.bin"


def link_dangling(folder: Path) -> str:
    (folder / "link.bin").symlink_to("nowhere")
    return "link.bin"


def link_parent(folder: Path) -> str:
    (folder / "link").symlink_to(folder.parent)
    return "link/secret.bin"


def link_deep(folder: Path) -> str:
    (folder / "sub" / "link").symlink_to(folder.parent)
    return "sub/link/secret.bin"


def hard_link(folder: Path) -> str:
    (folder / "hard.bin").hardlink_to(folder.parent / "secret.bin")
    return "hard.bin"


def pipe(folder: Path) -> str:
    os.mkfifo(folder / "pipe")
    return "pipe"


def directory(folder: Path) -> str:
    return "sub"


def missing(folder: Path) -> str:
    return "sub/none.bin"


def file_as_folder(folder: Path) -> str:
    return "data.bin/x"


def too_long(folder: Path) -> str:
    return "n" * 5000


PLACES: dict[Callable[[Path], str], str] = {
    link_file: "is or passes a symbolic link",
    link_inside: "is or passes a symbolic link",
    link_dangling: "is or passes a symbolic link",
    link_parent: "is or passes a symbolic link",
    link_deep: "is or passes a symbolic link",
    hard_link: r"has a second name \(hard link\)",
    pipe: "is no regular file",
    directory: "is no regular file",
    missing: "is not beside the model",
    file_as_folder: r"cannot be opened \(Not a directory\)",
    too_long: r"cannot be opened \(File name too long\)",
}


@pytest.mark.parametrize("make", PLACES, ids=lambda make: make.__name__)
def test_a_file_that_is_not_plain_or_not_inside_is_refused_unopened(
    make: Callable[[Path], str], folder: Path, opened: list[str]
) -> None:
    name = make(folder)
    with pytest.raises(ModelError, match=PLACES[make]):
        open_external(folder, name)
    assert set(opened) <= {str(folder), "sub", "data.bin"}, "only folders on the way"


def test_the_models_own_folder_may_be_reached_by_a_link(folder: Path) -> None:
    reached = folder.parent / "reached"
    reached.symlink_to(folder)
    assert locate(reached, "W", DATA, 100) == Storage("data.bin", 0, 100)


def test_a_file_exchanged_for_a_link_after_it_was_looked_at_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exchange(where: str, name: str, status: os.stat_result) -> None:
        (folder / "data.bin").unlink()
        (folder / "data.bin").symlink_to("../secret.bin")

    monkeypatch.setattr(values, "_refuse_link", exchange)
    with pytest.raises(ModelError, match="cannot be opened"):
        open_external(folder, "data.bin")


def test_a_file_exchanged_for_another_one_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exchange(where: str, name: str, status: os.stat_result) -> None:
        (folder / "data.bin").rename(folder / "old.bin")
        (folder / "data.bin").write_bytes(b"other")

    monkeypatch.setattr(values, "_refuse_link", exchange)
    before = len(list(Path("/dev/fd").iterdir()))
    with pytest.raises(ModelError, match="was exchanged"):
        open_external(folder, "data.bin")
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_no_descriptor_stays_open(folder: Path) -> None:
    before = len(list(Path("/dev/fd").iterdir()))
    locate(folder, "W", {"location": "sub/data.bin"}, None)
    for name in ("none/x", "sub", "data.bin/x", link_deep(folder), hard_link(folder)):
        with pytest.raises(ModelError):
            open_external(folder, name)
    assert len(list(Path("/dev/fd").iterdir())) == before


@table(
    ("dims", "element", "size"),
    [
        ([], "float", 4),
        ([2, 3], "FLOAT", 24),
        ([0, 5], "double", 0),
        ([3], "int4", 2),
        ([5], "uint2", 2),
        ([7], "bool", 7),
        ([2], "complex128", 32),
        ([2], "string", None),
        ([2], "undefined", None),
        ([2**63 - 1], "uint8", 2**63 - 1),
        ([2**31, 2**31], "float", 2**64),
    ],
)
def test_a_shape_and_type_need_so_many_bytes(dims: list[int], element: str, size: int | None) -> None:
    assert checked_dims(dims, element) == size


@table("element", sorted(set(TensorProto.DataType.keys()) - {"UNDEFINED", "STRING"}))
def test_every_element_type_of_onnx_has_the_size_that_onnx_writes(element: str) -> None:
    data_type = TensorProto.DataType.Value(element)
    for count in (0, 1, 2, 3, 8):
        plain = helper.make_tensor("t", data_type, [count], [0] * count)
        written = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(plain))
        assert checked_dims([count], element) == len(written.raw_data)


@table("dims", [[-1], [0, -1], [2**62, 4], [0, 2**62, 2**62], [2**63 - 1, 2**63 - 1, 0], [2**33] * 9])
def test_absurd_dimensions_are_refused(dims: list[int]) -> None:
    with pytest.raises(ModelError, match=r'the stored tensor "W" has'):
        checked_dims(dims, "float", "W")


def stored(path: Path) -> list[TensorProto]:
    model = onnx.load(path, load_external_data=False)
    constants = [attribute.t for node in model.graph.node for attribute in node.attribute if attribute.HasField("t")]
    return [part for part in [*model.graph.initializer, *constants] if part.data_location == TensorProto.EXTERNAL]


@pytest.mark.skipif(not CASES.exists(), reason="the shared models are absent")
@pytest.mark.parametrize("path", sorted(CASES.rglob("*.onnx")), ids=lambda path: path.stem[:60])
def test_every_known_attack_on_external_data_is_refused(path: Path, opened: list[str]) -> None:
    for part in stored(path):
        opened.clear()
        needed = checked_dims(part.dims, TensorProto.DataType.Name(part.data_type), part.name)
        with pytest.raises(ModelError):
            locate(path.parent, part.name, [(entry.key, entry.value) for entry in part.external_data], needed)
        assert not [name for name in opened if "secret" in name or ".." in name]


@pytest.mark.skipif(not CASES.exists(), reason="the shared models are absent")
def test_the_attack_through_a_linked_parent_folder_opens_nothing_behind_it(tmp_path: Path, opened: list[str]) -> None:
    case = next(CASES.glob("TestLoadExternalDataSymlinkProtection*parent_directory_symlink"))
    (tmp_path / "sensitive").mkdir()
    (tmp_path / "sensitive" / "secret.bin").write_bytes((case / "sensitive" / "secret.bin").read_bytes())
    (tmp_path / "model_dir").mkdir()
    (tmp_path / "model_dir" / "subdir").symlink_to(tmp_path / "sensitive")
    (part,) = stored(case / "model_dir" / "model.onnx")
    opened.clear()
    with pytest.raises(ModelError, match=r'"subdir/secret.bin" is or passes a symbolic link'):
        locate(tmp_path / "model_dir", part.name, [(entry.key, entry.value) for entry in part.external_data], None)
    assert opened == [str(tmp_path / "model_dir")]
