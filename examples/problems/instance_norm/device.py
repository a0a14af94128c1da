"""As much of HIP as the twins need: kernels compiled at run time (hiprtc), memory of the device, launches."""

import ctypes
from contextlib import contextmanager

hip = ctypes.CDLL("libamdhip64.so", mode=ctypes.RTLD_GLOBAL)
_ranges = ctypes.CDLL("librocprofiler-sdk-roctx.so")
_compiler = ctypes.CDLL("libhiprtc.so")
hip.hipModuleLaunchKernel.argtypes = [
    ctypes.c_void_p, *[ctypes.c_uint] * 7, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p,
]  # fmt: skip


def kernel(source, name):
    """The kernel of that name, compiled for the device of this thread."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    text = source.encode()
    check(_compiler.hiprtcCreateProgram(ctypes.byref(program), text, b"kernels.hip", 0, None, None))
    check(_compiler.hiprtcCompileProgram(program, 0, None))
    check(_compiler.hiprtcGetCodeSize(program, ctypes.byref(size)))
    code = ctypes.create_string_buffer(size.value)
    check(_compiler.hiprtcGetCode(program, code))
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    check(hip.hipModuleLoadData(ctypes.byref(module), code))
    check(hip.hipModuleGetFunction(ctypes.byref(function), module, name.encode()))
    return function


def memory(size):
    """So many bytes of the device."""
    address = ctypes.c_void_p()
    check(hip.hipMalloc(ctypes.byref(address), ctypes.c_size_t(size)))
    return address


def arguments(*values):
    """Of a launch, for as long as these values are."""
    return (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))


@contextmanager
def step():
    """A range of that name."""
    _ranges.roctxRangePushA(b"step")
    yield
    _ranges.roctxRangePop()


def check(status):
    if status != 0:
        raise RuntimeError(f"HIP says error {status}")
