"""Context switches of the program's threads without root: PERF_RECORD_SWITCH of `perf_event_open(2)`.

One descriptor per CPU, inherited by every child. It tells when a thread was switched out and in, and whether it could
have gone on; not who woke it, nor who took its place.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import platform
import struct
from pathlib import Path

from leadline.capture.kernel.recording import Recording, Refused

_NUMBERS = {"x86_64": 298, "aarch64": 241}
_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
_ENABLE, _DISABLE = 0x2400, 0x2401
_SOFTWARE, _DUMMY = 1, 9
_SAMPLE = 0x2 | 0x4 | 0x80  # TID, TIME, CPU
_FLAGS = (
    1  # disabled
    | 1 << 1  # inherit
    | 1 << 5  # exclude_kernel
    | 1 << 6  # exclude_hv
    | 1 << 9  # comm
    | 1 << 13  # task
    | 1 << 18  # sample_id_all
    | 1 << 25  # use_clockid
    | 1 << 26  # context_switch
)
_CLOCK_MONOTONIC = 1
_ATTRIBUTE = struct.Struct("<IIQQQQQIIQQQQIiQIHHIIQ")
_PAGES = 64
_HEAD, _TAIL = 1024, 1032  # of struct perf_event_mmap_page
_CLOSE_ON_EXEC = 8


class PerfRecorder:
    """Made, it follows this process's children; it keeps switches between `begin` and `end`."""

    switch: Path | None = None

    def __init__(self, level: str) -> None:
        """Raises Refused."""
        self._level = level
        self._rings: dict[int, tuple[int, mmap.mmap]] = {}
        self._data: dict[int, bytearray] = {}
        number = _NUMBERS.get(platform.machine())
        if number is None:
            raise Refused(f"perf_event_open has no known number on {platform.machine()}")
        try:
            for cpu in sorted(os.sched_getaffinity(0)):
                descriptor = _open(number, cpu)
                self._rings[cpu] = (descriptor, mmap.mmap(descriptor, (_PAGES + 1) * mmap.PAGESIZE))
                self._data[cpu] = bytearray()
        except OSError as error:
            self.remove()
            setting = _paranoid()
            because = f", kernel.perf_event_paranoid is {setting} and has to be 2 at most" if setting > 2 else ""
            raise Refused(f"this user may not record context switches ({error.strerror}{because})") from None

    def begin(self) -> None:
        """Keep switches from now on."""
        for descriptor, _ in self._rings.values():
            fcntl.ioctl(descriptor, _ENABLE, 0)

    def end(self) -> None:
        """Keep no more."""
        self.drain()  # a full ring tells what it lost when it has room again
        for descriptor, _ in self._rings.values():
            fcntl.ioctl(descriptor, _DISABLE, 0)
        self.drain()

    def drain(self) -> None:
        """Take what the rings hold, to be called before they are full."""
        for cpu, (_, ring) in self._rings.items():
            head = struct.unpack_from("<Q", ring, _HEAD)[0]
            tail = struct.unpack_from("<Q", ring, _TAIL)[0]
            size = _PAGES * mmap.PAGESIZE
            low, high = tail % size, head % size
            if head > tail:
                base = mmap.PAGESIZE
                pieces = [(low, high)] if low < high else [(low, size), (0, high)]
                for begin, end in pieces:
                    self._data[cpu] += ring[base + begin : base + end]
                struct.pack_into("<Q", ring, _TAIL, head)

    def save(self, folder: Path) -> Recording:
        """Everything that was kept. Raises OSError."""
        for cpu, data in self._data.items():
            (folder / f"cpu{cpu}.perf").write_bytes(data)
        recording = Recording("perf", self._level)
        if self._level != "sched":
            recording.sentences.append(f"{self._level} needs the kernel's tracer, so only switches were recorded")
        return recording

    def remove(self) -> None:
        """Close everything. Raises nothing."""
        for descriptor, ring in self._rings.values():
            ring.close()
            os.close(descriptor)
        self._rings.clear()


def _open(number: int, cpu: int) -> int:
    # struct perf_event_attr of size 128 (PERF_ATTR_SIZE_VER7): type, size, config, period, sample_type, read_format,
    # flags, wakeup_events, bp_type, config1, config2, branch_sample_type, sample_regs_user, sample_stack_user, clockid,
    # sample_regs_intr, aux_watermark, sample_max_stack, reserved, aux_sample_size, reserved, sig_data
    values = (_SOFTWARE, 128, _DUMMY, 0, _SAMPLE, 0, _FLAGS, 0, 0, 0, 0, 0, 0, 0, _CLOCK_MONOTONIC, 0, 0, 0, 0, 0, 0, 0)
    attribute = ctypes.create_string_buffer(_ATTRIBUTE.pack(*values), 128)
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = int(library.syscall(ctypes.c_long(number), attribute, 0, cpu, -1, ctypes.c_ulong(_CLOSE_ON_EXEC)))
    if descriptor < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return descriptor


def _paranoid() -> int:
    try:
        return int(_PARANOID.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return -1
