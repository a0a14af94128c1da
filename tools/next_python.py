#!/usr/bin/env python3
"""Build Leadline for a CPython that this machine does not have, in a Debian system of its own, and test it there.

    python tools/next_python.py                            3.14 with Debian's PyTorch, and 3.15
    python tools/next_python.py 3.14 --tests tests/torch   these tests alone
    python tools/next_python.py 3.15 --short               build, doctor and one measured program; no pytest
    python tools/next_python.py --wheel                    the wheels of dist/, in environments that have nothing else
    python tools/next_python.py 3.14 --shell 'COMMAND'     run something else there

The system is made once, by debootstrap as root, and kept: build/chroots/SUITE, or below LEADLINE_CHROOTS.
LEADLINE_DEBIAN names a mirror. What PyPI has is downloaded by the pip that runs this, with its settings; inside there
is no network. The checkout is copied in each time; what was compiled before is kept. JOBS bounds processes (2); where
LEADLINE_RECORD_RUN names a folder, records of the runs come there (tests/record_run.py). Exits with 1 where one failed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from debian import MIRROR
from test_pythons import ROOT
from test_wheel import PROGRAM as WHEEL_PROGRAM
from test_wheel import use, wheel_for

CHROOTS = Path(os.environ.get("LEADLINE_CHROOTS", ROOT / "build/chroots"))
HOME = "/srv/leadline"
BASE = "g++,cmake,ninja-build,ccache,ca-certificates,procps"
PROGRAM = """
import leadline

def work():
    return sum(i * i for i in range(3_000_000))

for _ in range(5):
    with leadline.region("my region"):
        work()
print("the program's output", work())
"""


@dataclass(frozen=True)
class Interpreter:
    """A CPython and where it comes from."""

    version: str
    suite: str
    packages: tuple[str, ...]  # of Debian
    tests: tuple[str, ...]  # that run when none are named
    pinned: bool  # whether the versions of requirements/ have wheels for it
    default: bool  # whether it is the suite's own Python 3, which Debian's modules are compiled for

    @property
    def python(self) -> str:
        """The interpreter with what tests need, as the chroot sees it."""
        return f"{HOME}/env-{self.version}/bin/python"


# Without PyTorch, whole folders whose programs need it skip themselves.
PLAIN = ("tests/capture", "tests/cpu", "tests/attach", "tests/truth", "tests/cct", "tests/profiles", "tests/trace")
INTERPRETERS = {
    "3.14": Interpreter(
        "3.14",
        "sid",
        ("python3.14", "python3.14-dev", "python3.14-venv", "python3-torch"),
        (*PLAIN, "tests/torch", "tests/training", "tests/agree", "tests/demo", "tests/problems"),
        pinned=True,
        default=True,
    ),
    "3.15": Interpreter(
        "3.15", "sid", ("python3.15", "python3.15-dev", "python3.15-venv"), PLAIN, pinned=False, default=False
    ),
}


class System:
    """A Debian system below CHROOTS."""

    def __init__(self, suite: str) -> None:
        self.suite = suite
        self.root = CHROOTS / suite

    def run(self, *command: str) -> int:
        """Exit status of a command inside. Mounts are private to it, so that none stays behind."""
        mounts = (
            f"mount -t proc proc {self.root}/proc; mount --rbind /dev {self.root}/dev; "
            f"mount --rbind /sys {self.root}/sys; mount -t tmpfs tmpfs {self.root}/tmp; "
            f'exec chroot {self.root} /usr/bin/env -i -C {HOME}/checkout "$@"'
        )
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "LANG": "C.UTF-8"}
        environment |= {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CMAKE_C_COMPILER_LAUNCHER": "ccache"}
        environment |= {"CCACHE_NOHASHDIR": "1", "CCACHE_BASEDIR": f"{HOME}/checkout", "CCACHE_DIR": f"{HOME}/ccache"}
        environment |= {"DEBIAN_FRONTEND": "noninteractive", "CMAKE_BUILD_PARALLEL_LEVEL": os.environ.get("JOBS", "2")}
        environment |= {"LEADLINE_RECORD_RUN": f"{HOME}/runs"}
        given = [f"{name}={value}" for name, value in environment.items()]
        isolated = ["unshare", "--mount", "--propagation", "private", "sh", "-c", mounts, "sh", *given, *command]
        return subprocess.run(isolated, check=False, stdin=subprocess.DEVNULL).returncode

    def make(self, packages: tuple[str, ...]) -> bool:
        """Whether the system is there, with these packages."""
        (self.root / HOME.lstrip("/") / "checkout").mkdir(parents=True, exist_ok=True)
        if not (self.root / "usr/bin/ccache").exists():
            if shutil.which("debootstrap") is None:
                print("debootstrap is not installed; `apt-get install debootstrap` and run this as root.")
                return False
            command = ["debootstrap", "--variant=minbase", f"--include={BASE}", self.suite, str(self.root), MIRROR]
            if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode != 0:
                print(f"debootstrap failed; its log is {self.root}/debootstrap/debootstrap.log.")
                return False
        missing = [one for one in packages if not (self.root / f"var/lib/dpkg/info/{one}.list").exists()]
        if not missing:
            return True
        # apt-get resolves names and reads its settings as this machine does.
        for name in ("etc/resolv.conf", "etc/hosts"):
            shutil.copy(f"/{name}", self.root / name)
        for setting in Path("/etc/apt/apt.conf.d").glob("*"):
            if setting.is_file() and b"Acquire" in setting.read_bytes():
                shutil.copy(setting, self.root / "etc/apt/apt.conf.d")
        install = ("apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing)
        return self.run("apt-get", "update", "-qq") == 0 and self.run(*install) == 0

    def copy_checkout(self) -> None:
        """Files of the checkout that git does not ignore; those that went since the last time go here, too."""
        target = self.root / HOME.lstrip("/") / "checkout"
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        wanted = {name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()}
        for name in wanted:
            there = target / name
            here = (ROOT / name).stat()
            if there.is_file() and there.stat().st_size == here.st_size and there.stat().st_mtime == here.st_mtime:
                continue
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, there)
        for folder in ("python", "native", "tests"):
            for there in (target / folder).rglob("*"):
                kept = there.suffix in (".pyc", ".so") or str(there.relative_to(target)) in wanted
                if there.is_file() and not kept:
                    there.unlink()


def download(system: System, one: Interpreter) -> bool:
    """Whether what tests need lies in the system."""
    wheels = system.root / HOME.lstrip("/") / f"wheels-{one.version}"
    if wheels.is_dir():
        return True
    fetch = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "download", "--only-binary", ":all:"]
    fetch += ["--python-version", one.version, "--implementation", "cp", "-d", str(wheels)]
    fetch += ["-r", "requirements/torch-free.txt"]
    fetch += ["-c", "requirements/test-constraints.txt"] if one.pinned else []
    good = subprocess.run(fetch, cwd=ROOT, check=False).returncode == 0
    if not good:
        shutil.rmtree(wheels, ignore_errors=True)
    return good


def install(system: System, one: Interpreter) -> bool:
    """Whether Leadline is installed in an environment of this interpreter, compiled there."""
    if not download(system, one):
        return False
    inside = [one.python, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--no-index"]
    inside += ["--find-links", f"{HOME}/wheels-{one.version}"]
    build = ["--config-settings", f"build-dir={HOME}/build-{one.version}"]
    # 3.15 runs the .start file of an editable install after all .pth files, so after the one that begins to measure.
    what = ["-e", "."] if one.default else ["--force-reinstall", "."]
    steps = []
    if not (system.root / one.python.lstrip("/")).is_symlink():
        options = ["--system-site-packages"] if one.default else []
        steps.append([f"python{one.version}", "-m", "venv", *options, f"{HOME}/env-{one.version}"])
        steps.append([*inside, "-r", "requirements/torch-free.txt"])
    steps.append([*inside, "--no-build-isolation", "--no-deps", *build, *what])
    return all(system.run(*step) == 0 for step in steps)


def smoke(system: System, one: Interpreter) -> bool:
    """Whether doctor's self-tests pass and a program's own region is in its report, sampled with native frames."""
    home = system.root / HOME.lstrip("/")
    (home / "program.py").write_text(PROGRAM)
    leadline = (one.python, "-m", "leadline")
    out = f"{HOME}/out-{one.version}.leadline"
    steps = (
        (*leadline, "doctor"),
        (*leadline, "run", "--native", "-o", out, f"{HOME}/program.py"),
        ("sh", "-c", f"{' '.join(leadline)} report {out} | tee {HOME}/report.txt"),
    )
    if not all(system.run(*step) == 0 for step in steps):
        return False
    text = (home / "report.txt").read_text()
    if "my region" not in text or "work" not in text:
        return False
    return system.run(one.python, "tests/record_run.py", "doctor, a program under `run --native`, its report") == 0


def use_wheel(one: Interpreter) -> str:
    """Empty where the wheel of dist/ installs and does what the README promises, else what went wrong."""
    system, wheel = System(one.suite), wheel_for(one.version)
    if wheel is None:
        return "there is no wheel in dist/; run `make cross-wheel`"
    if not system.make(one.packages) or not download(system, one):
        return "the system could not be made"
    folder = f"{HOME}/wheel-{one.version}"
    there = system.root / folder.lstrip("/")
    shutil.rmtree(there, ignore_errors=True)
    there.mkdir()
    shutil.copy(wheel, there)
    (there / "program.py").write_text(WHEEL_PROGRAM)
    python = f"{folder}/env/bin/python"
    install = [python, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--no-index"]
    install += ["--find-links", f"{HOME}/wheels-{one.version}", f"{folder}/{wheel.name}"]
    if system.run(f"python{one.version}", "-m", "venv", f"{folder}/env") or system.run(*install):
        return f"{wheel.name} does not install"
    inside = [shutil.which("chroot") or "/usr/sbin/chroot", str(system.root), python]
    return use(inside, folder, {"PATH": "/usr/bin:/bin", "HOME": "/root", "LANG": "C.UTF-8"})


def take_records(system: System) -> None:
    """What the runs recorded inside, where this run is to record."""
    if target := os.environ.get("LEADLINE_RECORD_RUN"):
        for record in (system.root / HOME.lstrip("/") / "runs").glob("*.json"):
            shutil.copy(record, target)


def test(one: Interpreter, tests: list[str], short: bool) -> bool:
    """Make what is missing, build, and run; prints what it does."""
    system = System(one.suite)
    began = time.monotonic()

    def step(name: str, good: bool) -> bool:
        print(
            f"== Python {one.version}: {name} {'done' if good else 'FAILED'}, {time.monotonic() - began:.0f} s",
            flush=True,
        )
        return good

    if not step("system", system.make(one.packages)):
        return False
    system.copy_checkout()
    if not step("build", install(system, one)) or not step("smoke", smoke(system, one)):
        return False
    if short:
        take_records(system)
        return True
    pytest = (one.python, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider")
    passed = system.run(*pytest, "-n", os.environ.get("JOBS", "2"), *(tests or one.tests)) == 0
    take_records(system)
    return step("tests", passed)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Build and test Leadline for a CPython that is not installed here.")
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"{', '.join(INTERPRETERS)}; all by default")
    parser.add_argument("--tests", nargs="+", default=[], metavar="PATH", help="these tests instead of the chosen ones")
    parser.add_argument("--short", action="store_true", help="build, doctor and one measured program")
    parser.add_argument("--wheel", action="store_true", help="install and use the wheel of dist/ instead")
    parser.add_argument(
        "--shell", metavar="COMMAND", help="run this there, with the environment's Python first on PATH"
    )
    arguments = parser.parse_args(argv)
    for version in arguments.versions:
        if version not in INTERPRETERS:
            parser.error(f"no system is known for Python {version}; known are {', '.join(INTERPRETERS)}")
    chosen = [INTERPRETERS[version] for version in arguments.versions or INTERPRETERS]
    if arguments.shell:
        one = chosen[0]
        system = System(one.suite)
        system.copy_checkout()
        path = f"PATH={Path(one.python).parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        return system.run(path, "bash", "-c", arguments.shell)
    if arguments.wheel:
        problems = {one.version: use_wheel(one) for one in chosen}
        for version, problem in problems.items():
            print(f"Python {version}, its wheel: {problem or 'works'}")
        return 1 if any(problems.values()) else 0
    results = {one.version: test(one, arguments.tests, arguments.short) for one in chosen}
    for version, good in results.items():
        print(f"Python {version}: {'passed' if good else 'FAILED'}")
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
