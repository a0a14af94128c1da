"""Names of native frames: against what `nm` says, with files that are stripped, rebuilt, gone or spoilt."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from leadline.profiles import Profile
from leadline.profiles.builder import ProfileBuilder
from leadline.profiles.elf import ElfError, ElfFile
from leadline.profiles.names import readable
from leadline.profiles.symbols import symbolized

SOURCE = """
namespace shop { namespace { __attribute__((noinline)) int hidden(int n) { return n * 3; } }
template <typename T> struct Till { __attribute__((noinline)) T count(T n) { return hidden(n) + 1; } };
template struct Till<int>;
}
extern "C" int plain(int n) { return shop::Till<int>().count(n); }
"""

pytestmark = pytest.mark.skipif(
    shutil.which("c++") is None or shutil.which("nm") is None, reason="no compiler or nm is installed"
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    (folder / "shop.cpp").write_text(SOURCE)
    command = ["c++", "-O1", "-shared", "-fPIC", "-Wl,--build-id", "shop.cpp", "-o", "libshop.so"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "libshop.so"


def functions(library: Path) -> dict[str, tuple[int, int]]:
    """Start and size by mangled name, as nm says."""
    said = subprocess.run(["nm", "-S", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in said.splitlines()]
    return {row[3]: (int(row[0], 16), int(row[1], 16)) for row in rows if len(row) == 4 and row[2] in "tTwW"}


def drawn(library: Path, build_id: str, addresses: list[int]) -> Profile:
    """A profile with one native frame per address, all below one thread."""
    builder = ProfileBuilder()
    thread = builder.node_of_thread(builder.thread(builder.process("program"), "main"))
    for address in addresses:
        name = f"{library.name}+{address:#x}"
        frame = builder.frame("native", name, file=str(library), module=build_id, address=address)
        builder.add(builder.child(thread, frame), "cpu_sample", 1_000_000)
    return builder.profile()


def test_every_function_is_found_over_all_of_its_length(library: Path) -> None:
    elf = ElfFile(library)
    for name, (start, size) in functions(library).items():
        inside = np.array([start, start + size // 2, start + size - 1], np.uint64)
        found = elf.functions_at(inside)
        assert {place for place, _ in found} == {start}, name
        assert len({text for _, text in found}) == 1
    assert elf.functions_at(np.array([1, 2**62], np.uint64)) == [(0, ""), (0, "")]
    notes = subprocess.run(["readelf", "-n", library], capture_output=True, text=True, check=True).stdout
    assert elf.build_id and elf.build_id in notes


def test_names_are_written_into_the_profile_and_one_function_is_one_frame(library: Path) -> None:
    places = functions(library)
    count = next(name for name in places if "count" in name)
    start, size = places[count]
    elf = ElfFile(library)
    done = symbolized(drawn(library, elf.build_id, [start, start + size // 2, places["plain"][0] + 1]))
    assert (done.named, done.unnamed, done.sentences) == (3, 0, ())
    named = {node.name: node for node in done.profile.tree.walk() if node.kind == "native"}
    assert set(named) == {"shop::Till<>::count", "plain"}
    assert named["shop::Till<>::count"].exclusive("cpu_sample").sum == 2_000_000
    assert named["plain"].exclusive("cpu_sample").count == 1


def test_a_file_that_is_not_the_one_that_ran_is_named_not_guessed(library: Path, tmp_path: Path) -> None:
    address = functions(library)["plain"][0]
    other = symbolized(drawn(library, "00ff", [address]))
    assert other.named == 0 and "build id differs" in other.sentences[0] and str(library) in other.sentences[0]
    gone = symbolized(drawn(tmp_path / "libshop.so", ElfFile(library).build_id, [address]))
    assert gone.sentences == (
        f"{tmp_path / 'libshop.so'} no longer exists; name the folder of a copy with --search FOLDER.",
    )
    found = symbolized(drawn(tmp_path / "libshop.so", ElfFile(library).build_id, [address]), [library.parent])
    assert (found.named, found.sentences) == (1, ())


def test_a_stripped_file_has_its_exported_names(library: Path, tmp_path: Path) -> None:
    stripped = tmp_path / "libshop.so"
    subprocess.run(["strip", "-o", stripped, library], check=True)
    elf = ElfFile(stripped)
    assert [name for _, name in elf.functions_at(np.array([functions(library)["plain"][0]], np.uint64))] == ["plain"]


def test_spoilt_files_never_crash_the_reader(library: Path, tmp_path: Path) -> None:
    whole = library.read_bytes()
    chance = random.Random(5)
    addresses = np.array([start for start, _ in functions(library).values()], np.uint64)
    path = tmp_path / "spoilt.so"
    for _ in range(300):
        bytes_ = bytearray(whole)
        for _ in range(chance.randrange(1, 40)):
            bytes_[chance.choice((chance.randrange(64), chance.randrange(len(bytes_))))] = chance.randrange(256)
        path.write_bytes(bytes(bytes_[: chance.randrange(len(bytes_)) + 1] if chance.random() < 0.3 else bytes_))
        try:
            elf = ElfFile(path)
        except ElfError:
            continue
        elf.functions_at(addresses)
        assert isinstance(elf.build_id, str)
        elf.close()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("at::native::impl(at::Tensor const&, c10::Scalar const&)", "at::native::impl"),
        ("void std::vector<int, std::allocator<int> >::push_back(int&&)", "std::vector<>::push_back"),
        ("foo(int)::{lambda(int)#1}::operator()(int) const", "foo::{lambda#1}::operator()"),
        ("at::(anonymous namespace)::f(int) [clone .isra.0]", "at::{anonymous}::f"),
        ("std::function<void (int)>::operator()(int) const", "std::function<>::operator()"),
        ("mkl_blas_def_sgemm_kernel_0_zen", "mkl_blas_def_sgemm_kernel_0_zen"),
        ("", ""),
        (
            "void c10::function_ref<void (char**, long const*, long, long)>::callback_fn<at::AVX2::VectorizedLoop2d"
            "<at::native::(anonymous namespace)::mul_kernel(at::Tensor&)::{lambda()#1}::operator()() const::{lambda(c10::"
            "quint8)#1}, at::native::(anonymous namespace)::mul_kernel(at::Tensor&)::{lambda()#1}::operator()() const::"
            "{lambda(at::vec::Vectorized<c10::quint8>)#1}> >(long, char**, long const*, long, long)",
            "at::native::{anonymous}::mul_kernel::{lambda}",
        ),
        (
            "void c10::function_ref<void (long)>::callback_fn<auto at::loop_2d_from_1d<void at::cpu_serial_kernel<void "
            "at::(anonymous namespace)::uniform_kernel<at::Generator*>(at::Base&, double)::'lambda'()::operator()() const"
            "::'lambda'()>(at::Base&)::'lambda'(char**)>(at::Generator* const&)::'lambda'(char**)>(long, char**)",
            "at::{anonymous}::uniform_kernel<>::{lambda}",
        ),
        (
            "void at::parallel_for<at::native::softmax(at::Tensor const&, long)::{lambda(long, long)#1}>(long, long, long, "
            "at::native::softmax(at::Tensor const&, long)::{lambda(long, long)#1} const&)",
            "at::parallel_for<at::native::softmax::{lambda}>",
        ),
        (
            "std::_Function_handler<void (int), shop::count(int)::{lambda(int)#1}>::_M_invoke(std::_Any_data const&)",
            "shop::count::{lambda}",
        ),
        ("void sort<int*, bool (*)(int, int)>(int*, int*, bool (*)(int, int))", "sort<>"),
        ("shop::operator< <int>(shop::Till<int> const&, f(int)::{lambda()#1})", "shop::operator< <>"),
        (
            "_ZN1a3refIFvPcEE8callbackIZN2at4loopIZZZNSB_3cpu12_GLOBAL__N_112uniform_kernIPNS8_3GenEEEvRS9_ddT_ENKUlvE_"
            "clEvEUlvE_EEDaRKSL_EUlS2_E_EEvl",
            "cpu::{anonymous}::uniform_kern::{lambda}",
        ),
        ("void f<int>(int)::{lambda(int)#1}::_FUN(int)", "f<>::{lambda#1}::_FUN"),
        ("f(int)::{lambda(int)#2}", "f::{lambda#2}"),
        ("_ZNQQ", "_ZNQQ"),
        ("_ZZN99x", "_ZZN99x"),
    ],
)
def test_names_fit_on_a_line(name: str, shown: str) -> None:
    assert readable(name) == shown


LINES = """
static volatile int g_sum;
static inline __attribute__((always_inline)) int deepest(int n) {
  for (int i = 0; i < n; ++i) g_sum += i;
  return g_sum;
}
static inline __attribute__((always_inline)) int middle(int n) {
  g_sum = 1;
  return deepest(n) + 2;
}
int outer_one(int n) {
  g_sum = n;
  return middle(n) * 3;
}
"""


@pytest.fixture(params=["inside", "moved away"])
def with_lines(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, Path]:
    """A library, and the file that has its debug information."""
    pytest.importorskip("symbolic", reason="the extra `lines` is not installed")
    if shutil.which("addr2line") is None or shutil.which("objcopy") is None:
        pytest.skip("no binutils are installed")
    (tmp_path / "lines.c").write_text(LINES)
    command = ["cc", "-g", "-O2", "-shared", "-fPIC", "-Wl,--build-id", "lines.c", "-o", "liblines.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    library, debug = tmp_path / "liblines.so", tmp_path / "liblines.debug"
    subprocess.run(["objcopy", "--only-keep-debug", library, debug], check=True)
    if request.param == "moved away":
        strip = ["objcopy", "--strip-debug", "--add-gnu-debuglink=liblines.debug", library]
        subprocess.run(strip, cwd=tmp_path, check=True)
    return library, debug


def test_inlined_functions_and_lines_are_those_that_addr2line_says(with_lines: tuple[Path, Path]) -> None:
    library, debug = with_lines
    start, size = functions(library)["outer_one"]
    addresses = list(range(start, start + size))
    asked = [hex(address) for address in addresses]
    said = subprocess.run(
        ["addr2line", "-a", "-f", "-i", "-e", debug, *asked], capture_output=True, text=True, check=True
    ).stdout.split("0x")[1:]
    done = symbolized(drawn(library, ElfFile(library).build_id, addresses))
    assert (done.named, done.unnamed, done.sentences) == (len(addresses), 0, ())
    tree = done.profile.tree
    found: dict[tuple[tuple[str, int], ...], int] = {}
    for node in tree.walk():
        if count := int(tree.exclusive("cpu_sample").count[node.row]):
            path = tuple((one.name, one.detail.get("line", 0)) for one in node.path() if one.kind == "native")
            found[path] = found.get(path, 0) + count
    expected: dict[tuple[tuple[str, int], ...], int] = {}
    for block in said:
        lines = block.splitlines()[1:]
        place = [line.rsplit(":", 1)[1].split()[0] for line in lines[1::2]]
        path = tuple((name, int(at) if at.isdigit() else 0) for name, at in zip(lines[::2], place, strict=True))[::-1]
        expected[path] = expected.get(path, 0) + 1
    assert any(len(path) == 3 for path in expected)
    assert {path: n for path, n in found.items() if path[-1][1]} == {p: n for p, n in expected.items() if p[-1][1]}
    assert sum(found.values()) == len(addresses)
    again = symbolized(done.profile)
    assert len(again.profile.tree) == len(tree) and again.sentences == ()


def test_debug_information_of_another_file_is_not_taken(with_lines: tuple[Path, Path]) -> None:
    library, debug = with_lines
    (library.parent / "other.c").write_text(LINES.replace("outer_one", "outer_two"))
    command = ["cc", "-g", "-shared", "-fPIC", "-Wl,--build-id", "other.c", "-o", str(debug)]
    subprocess.run(command, cwd=library.parent, check=True)
    start, _ = functions(library)["outer_one"]
    done = symbolized(drawn(library, ElfFile(library).build_id, [start + 4]))
    (node,) = (node for node in done.profile.tree.walk() if node.name == "outer_one")
    assert str(node.detail.get("source", "")).endswith(("lines.c", "")) and "other" not in str(node.detail)
