"""Which names of kernels are those of public libraries, so that `leadline redact` may keep them.

A program chooses the names of its own kernels, so that public words in one prove nothing. A name stays only in the form
that a library gives it: in a namespace of the library with no other namespace in its arguments, with the tile that a
vendor's generator writes, or as Inductor joins the operators that it has fused. Its words have to be public as well.
"""

from __future__ import annotations

import re

from leadline.report.public_names import is_public_name, public_operator_words

_NAMESPACES = re.compile(
    r"const|at|c10|std|cuda|cub|thrust|hipcub|rocprim|ck|cutlass\w*|cute|cudnn|cask\w*|cublas(Lt)?|cufft|cusparse|curand"
    r"|pytorch_flash|fbgemm(_gpu)?|nvjet|xmma|fmha\w*|__nv_\w+"
)
_QUALIFIED = re.compile(r"(void )?(::)?(?P<namespace>[A-Za-z_]\w*)::.*")
_FIRST = re.compile(r"(?<![\w:)>}])(?:::)?(?P<namespace>[A-Za-z_]\w*)::")
_ALONE = re.compile(r"(?<![\w:)>}])(?P<name>[A-Za-z]\w*_\w+)(?!\w|::)")
_OF_LIBRARIES = re.compile(
    r"(u?int\w*|char\d+|size|ptrdiff)_t|kernel_(grad|conv)_params|(cudnn|cublas|cutlass|cask|nccl|cusparse|curand)\w*"
)
_INDUCTOR = re.compile(r"triton_(poi|per|red|tem|for)_fused_(?P<operators>\w+?)_\d+(d\d+|e)*")
_FORMS = re.compile(
    r"(ampere|volta|turing|maxwell|hopper|sm\d+|cudnn|cutlass_\d+|cutlass_tensorop|nvjet)_\w*\d+x\d+\w*(\(.*\))?"
    r"|nccl(Dev)?Kernel_(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|SendRecv|AllToAll|Generic)\w*(\(.*\))?"
    r"|(void )?(gem(v2[TN]|vNSP|mk1|mSN_[NT]{2})_kernel\w*|splitKreduce_kernel)<.*"
    r"|(void )?flash::flash_(fwd|bwd)_\w*kernel<.*"
    r"|Cijk_[A-Z]\w*_MT\d+x\d+.*"
    r"|batched_transpose_\d\w*|(sub|op)tensor\w*|gridwise_\w*|igemm_\w*|naive_conv_\w*|__amd_rocclr_\w*|(miopen|MIOpen)\w*"
    r"|Mem(cpy|set)\b.*"
)


def is_public_kernel(name: str) -> bool:
    """Whether a library gives its kernels names of this form, and each word of it is public."""
    if not is_public_name(name):
        return False
    if fused := _INDUCTOR.fullmatch(name):
        return _are_operators(fused["operators"])
    return bool(_FORMS.fullmatch(name)) or _is_in_namespaces(name)


def _is_in_namespaces(name: str) -> bool:
    outer = _QUALIFIED.fullmatch(name)
    if outer is None or not _NAMESPACES.fullmatch(outer["namespace"]):
        return False
    return all(_NAMESPACES.fullmatch(one["namespace"]) for one in _FIRST.finditer(name)) and all(
        _OF_LIBRARIES.fullmatch(one["name"]) for one in _ALONE.finditer(name)
    )


def _are_operators(joined: str) -> bool:
    """Whether names of operators with `_` between them make the whole."""
    listed = public_operator_words()
    ends = {0}  # where a name may begin
    for end in range(1, len(joined) + 1):
        if end < len(joined) and joined[end] != "_":
            continue
        if any(joined[begin:end] in listed for begin in ends if begin < end):
            ends.add(end + 1)
    return len(joined) + 1 in ends
