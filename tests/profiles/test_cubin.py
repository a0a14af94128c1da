"""The reader of cubins against what NVIDIA's own disassembler said of the same files, and against damage."""

from __future__ import annotations

import json
import lzma
import random
from pathlib import Path

import pytest
from tests.profiles import cubin_listing

from leadline import _cubin
from leadline.profiles.sass import parse_listing

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


def test_damaged_cubins_give_less_and_never_end_the_process() -> None:
    chance = random.Random(5)
    for number in range(600):
        data = bytearray(FILES[number % len(FILES)].read_bytes())
        for _ in range(chance.randint(1, 30)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if number % 4 == 0:
            del data[chance.randrange(len(data)) :]
        try:
            cubin = _cubin.read(bytes(data))
        except ValueError as error:
            assert str(error).startswith("This ") and str(error).endswith(".")
            continue
        for function, size, _ in cubin.functions()[:5]:
            for offset in range(0, min(size, 512), 64):
                assert len(cubin.at(function, offset)) <= 64


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
