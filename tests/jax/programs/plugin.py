"""Calls a plug-in of PJRT that JAX has loaded, through its table as JAX does, inside and outside of a profile."""

import ctypes
import json
import os
import sys

import jax

import leadline

jax.devices()
library = ctypes.CDLL(os.environ["FAKE_PLUGIN"])
library.GetPjrtApi.restype = ctypes.c_void_p
library.fake_calls.restype = ctypes.c_uint64
table = library.GetPjrtApi()
FOLLOWED = (8, 10, 20, 22, 50, 55, 56, 58, 69, 70, 78, 92, 100, 102)


def slot(number):
    return ctypes.c_size_t.from_address(table + 40 + 8 * number).value


def call(number, *words):
    """The error's text, or an empty one; words of the structure after its two first."""
    arguments = (ctypes.c_size_t * (2 + len(words)))(8 * (2 + len(words)), 0, *words)
    error = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(slot(number))(ctypes.addressof(arguments))
    if not error:
        return "", list(arguments)
    message = (ctypes.c_size_t * 5)(40, 0, error, 0, 0)
    ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(slot(1))(ctypes.addressof(message))
    text = ctypes.string_at(message[3], message[4]).decode()
    call(0, error)
    return text, list(arguments)


host = (ctypes.c_float * 1000)(*range(1000))
back = (ctypes.c_float * 1000)()
dimensions = (ctypes.c_int64 * 2)(10, 100)
F32 = 11


def send():
    words = [1, ctypes.addressof(host), F32, ctypes.addressof(dimensions), 2, 0, 0, 0, 77, 0, 0, 0, 0]
    return call(22, *words)[1][14]


def fetch(buffer):
    size = call(70, buffer, 0, 0, 0, 0)[1][5]  # asks how much
    return call(70, buffer, 0, ctypes.addressof(back), size, 0)


results = (ctypes.c_size_t * 1)()
lists = (ctypes.c_size_t * 1)(ctypes.addressof(results))
chunk = (ctypes.c_size_t * 4)(0, 500, 0, 0)


def work():
    buffers = [send() for _ in range(3)]
    for _ in range(5):
        call(55, 1, 0, 0, 1, 0, ctypes.addressof(lists), 0, 0)
        buffers.append(results[0])
    fetch(buffers[0])
    call(102, 1, 0, ctypes.addressof(host), 0, 700, 1, 0)
    call(78, 1, ctypes.addressof(chunk), 0)
    for buffer in buffers:
        call(58, buffer)


before = [slot(number) for number in FOLLOWED]
with leadline.profile(sys.argv[1], quiet=True):
    call(10, *[0] * 9)
    library.fake_hold(1)
    inside = [slot(number) for number in FOLLOWED]
    work()
    finished = library.fake_finish()
    library.fake_hold(0)
    library.fake_fail(20)
    failed, _ = call(20, 1, 0, 0, 0, 0)
    library.fake_fail(-1)
    unplayed, _ = call(56, 1, 0, 0, 0, 0, 0)
    leadline.pause()
    work()
    leadline.resume()
after = [slot(number) for number in FOLLOWED]
work()
print(
    json.dumps(
        {
            "changed": [one != other for one, other in zip(before, inside, strict=True)],
            "restored": before == after,
            "failed": failed,
            "unplayed": unplayed,
            "came_back": list(back) == list(host),
            "finished": finished,
            "executed": library.fake_calls(55),
            "errors_freed": library.fake_calls(0),
        }
    )
)
