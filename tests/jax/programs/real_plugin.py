"""Asks a real plug-in for its slots, each with a structure of a wrong size, as it is and through ours."""

import ctypes
import json
import sys

from leadline import _native

library = ctypes.CDLL(sys.argv[1])
library.GetPjrtApi.restype = ctypes.c_void_p
table = library.GetPjrtApi()


def word(byte):
    return ctypes.c_size_t.from_address(table + byte).value


def call(number, *words):
    arguments = (ctypes.c_size_t * 40)(*words)
    function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(word(40 + 8 * number))
    error = function(ctypes.addressof(arguments))
    if not error:
        return ""
    message = (ctypes.c_size_t * 5)(40, 0, error, 0, 0)
    ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(word(40 + 8))(ctypes.addressof(message))
    text = ctypes.string_at(message[3], message[4]).decode()
    destroy = (ctypes.c_size_t * 3)(24, 0, error)
    ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(word(40))(ctypes.addressof(destroy))
    return text


def ask():
    return {number: call(int(number), 1) for number in sys.argv[2:] if number != "0"}


def stand():
    return [word(40 + 8 * int(number)) for number in sys.argv[2:]]


before, errors = stand(), ask()
client = call(10, 88)
_native.provider_start("pjrt", {"table": table, "bytes": True})
between, through_us = stand(), ask()
client_through_us = call(10, 88)
_native.provider_stop("pjrt")
print(
    json.dumps(
        {
            "size": word(0),
            "major": ctypes.c_int32.from_address(table + 32).value,
            "errors": errors,
            "through_us": through_us,
            "changed": before != between,
            "restored": before == stand(),
            "client": client,
            "client_through_us": client_through_us,
        }
    )
)
