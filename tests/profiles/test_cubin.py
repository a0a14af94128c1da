"""The reader of cubins against what NVIDIA's own disassembler said of the same files, and against damage."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from pathlib import Path

import pytest
from tests.profiles import cubin_listing

from leadline import _cubin
from leadline.profiles.sass import parse_listing

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "cubins"
FILES = sorted(FOLDER.glob("*.cubin"))


@pytest.fixture(scope="module")
def listings() -> dict[str, list[list[object]]]:
    """File to (function, offset, [(file, line), ...]) of every instruction, as `python -m tests.profiles.cubin_listing`
    has kept them."""
    kept: dict[str, list[list[object]]] = json.loads(lzma.decompress((FOLDER / "listings.json.xz").read_bytes()))
    return kept


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_instruction_has_the_lines_that_nvdisasm_gives(
    path: Path, listings: dict[str, list[list[object]]]
) -> None:
    cubin = _cubin.read(path.read_bytes())
    assert listings[path.name]
    for function, offset, chain in listings[path.name]:
        assert isinstance(function, str) and isinstance(offset, int) and isinstance(chain, list)
        assert [[file, line] for _, file, line in cubin.at(function, offset)] == chain, (function, hex(offset))


def test_inlined_functions_have_names_and_called_ones_their_kernel() -> None:
    rmsnorm = _cubin.read((FOLDER / "rmsnorm.sm_90.cubin").read_bytes())
    chain = rmsnorm.at("_Z7rmsnormPK6__halfS1_PS_i", 0x150)
    names = [name for name, _, _ in chain]
    assert names[0].endswith("__half2floatE6__half")  # of the header, with a hash of the file that includes it
    assert names[1:] == ["_Z8to_float6__half", "_Z6square6__half", "_Z7rmsnormPK6__halfS1_PS_i"]
    copies = _cubin.read((FOLDER / "copies.sm_90.cubin").read_bytes())
    assert {name: kernel for name, _, kernel in copies.functions()} == {
        "_Z9conflictsPfii": True,
        "_Z12strided_copyPKfPfii": True,
        "$_Z9conflictsPfii$_Z4slowfi": False,
    }
    assert copies.kernel_of("$_Z9conflictsPfii$_Z4slowfi") == "_Z9conflictsPfii"


def test_other_files_are_refused_in_a_sentence() -> None:
    for data in (b"", b"MZ" + bytes(100), Path("/proc/self/exe").read_bytes()[:4096]):
        with pytest.raises(ValueError, match="This is no cubin"):
            _cubin.read(data)


def test_damaged_cubins_give_less_or_one_sentence(tmp_path: Path) -> None:
    """Many more where asked for: `python -m tests.profiles.fuzz_cubin --seconds 600`."""
    command = [sys.executable, "-m", "tests.profiles.fuzz_cubin", "--files", "400", "--keep", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("chip", [80, 90, 100, 120])
def test_instructions_of_triton_stand_on_the_lines_of_its_python(chip: int) -> None:
    cubin = _cubin.read((FOLDER / f"matmul.sm_{chip}.cubin").read_bytes())
    # The driver's guards of tensor memory (10.0) stand on lines behind the last, as nvdisasm says too.
    source = [*(FOLDER / "matmul.py").read_text().splitlines(), *[""] * 10]
    sizes = {name: size for name, size, _ in cubin.functions()}
    chains = [cubin.at("matmul", offset) for offset in range(0, sizes["matmul"], 16)]
    assert {Path(file).name for chain in chains for _, file, _ in chain} == {"matmul.py"}
    texts = [[source[line - 1].strip() for _, _, line in chain] for chain in chains if chain]
    assert sum("tl.dot" in text[0] for text in texts) > 4
    inlined = [text for text in texts if len(text) > 1]
    assert inlined and all(text[0].startswith("return (value") and "rounded(total)" in text[1] for text in inlined)


def test_text_of_instructions_by_their_functions_own_offsets() -> None:
    listing = """
.text._Z1kv:
	//## File "k.cu", line 3
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 BRA `(.L_x_0) ;
.L_x_0:
        /*0020*/                   EXIT ;
$_Z1kv$_Z1fv:
        /*0030*/                   RET.REL.NODEC R2 `(_Z1kv) ;
"""
    assert parse_listing(listing) == {
        "_Z1kv": {0: "LDC R1, c[0x0][0x28]", 16: "@!P0 BRA `(.L_x_0)", 32: "EXIT"},
        "$_Z1kv$_Z1fv": {0: "RET.REL.NODEC R2 `(_Z1kv)"},
    }
    assert cubin_listing.chains(listing)["_Z1kv", 16] == [["k.cu", 3]]
