"""The package that `make vsix` leaves: whole, the same each time, and no more than it declares."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile

import pytest
from tests.vscode.package import ROOT, built


@pytest.fixture(scope="module")
def package():
    return built()


def test_the_package_is_what_editors_unpack(package):
    with zipfile.ZipFile(package) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        manifest = json.loads(archive.read("extension/package.json"))
    assert {"[Content_Types].xml", "extension.vsixmanifest", "extension/readme.md"} <= set(names)
    assert f"extension/{manifest['main'].removeprefix('./')}" in names
    assert "extension/dist/page.js" in names
    assert re.fullmatch(r"\d+\.\d+\.\d+", manifest["version"])


def test_the_same_sources_give_the_same_bytes(package):
    before = hashlib.sha256(package.read_bytes()).hexdigest()
    assert hashlib.sha256(built().read_bytes()).hexdigest() == before


def test_reading_needs_neither_trust_nor_node_nor_python(package):
    with zipfile.ZipFile(package) as archive:
        manifest = json.loads(archive.read("extension/package.json"))
        code = archive.read("extension/dist/extension.js").decode()
    for workspace in ("untrustedWorkspaces", "virtualWorkspaces"):
        assert manifest["capabilities"][workspace]["supported"] == "limited"
    assert manifest["browser"] == manifest["main"]
    # where the host has no processes, as in a browser, the second is asked for in vain and the file's own summary is shown
    assert set(re.findall(r"require\(\"([^\"]+)\"\)", code)) == {"vscode", "child_process"}
    assert re.search(r"try\s*\{\s*return require\(\"child_process\"\);?\s*\}\s*catch", code)


def test_every_command_that_is_declared_exists_and_the_other_way_round():
    manifest = json.loads((ROOT / "ui" / "vscode" / "package.json").read_text(encoding="utf-8"))
    declared = {one["command"] for one in manifest["contributes"]["commands"]}
    source = (ROOT / "ui" / "vscode" / "extension.ts").read_text(encoding="utf-8")
    registered = set(re.findall(r'command\("(leadline\.\w+)"', source))
    assert declared <= registered
    assert registered - declared == {"leadline.reveal", "leadline.evidence"}  # with arguments that only links have
    for menu in manifest["contributes"]["menus"].values():
        assert {one["command"] for one in menu} <= declared


def test_programs_are_run_in_trusted_workspaces_only():
    manifest = json.loads((ROOT / "ui" / "vscode" / "package.json").read_text(encoding="utf-8"))
    running = {"leadline.profileFile", "leadline.profileTest", "leadline.analyze"}
    for menu in manifest["contributes"]["menus"].values():
        for one in menu:
            if one["command"] in running:
                assert "isWorkspaceTrusted" in one["when"]
                assert "!virtualWorkspace" in one["when"]


def test_the_webview_allows_no_inline_script_and_no_address():
    source = (ROOT / "ui" / "vscode" / "editor.ts").read_text(encoding="utf-8")
    policy = re.search(r"const policy = `([^`]*)`", source)[1]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "http" not in policy


def test_an_icon_keys_and_a_walkthrough_of_commands_that_exist(package):
    with zipfile.ZipFile(package) as archive:
        manifest = json.loads(archive.read("extension/package.json"))
        assert archive.read(f"extension/{manifest['icon']}").startswith(b"\x89PNG")
        names = archive.namelist()
    contributes = manifest["contributes"]
    declared = {one["command"] for one in contributes["commands"]}
    assert {one["command"] for one in contributes["keybindings"]} <= declared
    for step in contributes["walkthroughs"][0]["steps"]:
        assert f"extension/{step['media']['markdown']}" in names
        for said in (step["description"], *step.get("completionEvents", ())):
            assert set(re.findall(r"[cC]ommand:(leadline\.\w+)", said)) <= declared


def test_traces_open_by_what_leadline_imports():
    from leadline.cli.main import main

    manifest = json.loads((ROOT / "ui" / "vscode" / "package.json").read_text(encoding="utf-8"))
    (traces,) = (one for one in manifest["contributes"]["customEditors"] if one["viewType"] == "leadline.trace")
    assert traces["priority"] == "option"  # a text editor stays the first choice for JSON
    source = (ROOT / "ui" / "vscode" / "asking.ts").read_text(encoding="utf-8")
    words = re.search(r'\["import", trace\.fsPath, "(-o)", made\.fsPath, "(--force)"\]', source)
    assert words and main(["import", "nothing.pt.trace.json", words[1], "made.leadline", words[2]]) == 2
