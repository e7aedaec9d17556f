"""The driver's status codes: numbers, names and texts. The C library has the same (native/status.c)."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """A driver status and its constant text. In C names begin with AIPU_STATUS_ERROR_ (SUCCESS: AIPU_STATUS_)."""

    text: str

    def __new__(cls, code: int, text: str) -> Status:  # noqa: PYI034 (Self needs Python 3.11)
        status = int.__new__(cls, code)
        status._value_ = code
        status.text = text
        return status

    SUCCESS = 0x0, "success"
    NULL_PTR = 0x1, "an argument is a null pointer"
    INVALID_CTX = 0x2, "the context does not exist"
    OPEN_DEV_FAIL = 0x3, "the device cannot be opened"
    DEV_ABNORMAL = 0x4, "the device does not work as it should"
    DEINIT_FAIL = 0x5, "the context cannot be ended"
    INVALID_CONFIG = 0x6, "the configuration is not valid"
    UNKNOWN_BIN = 0x7, "a file does not belong to this graph"
    GVERSION_UNSUPPORTED = 0x8, "the file is no graph of a supported version"
    INVALID_GBIN = 0x9, "the graph file is damaged"
    TARGET_NOT_FOUND = 0xA, "there is no device for the graph's target"
    INVALID_GRAPH_ID = 0xB, "the graph does not exist"
    OPEN_FILE_FAIL = 0xC, "a file cannot be opened"
    MAP_FILE_FAIL = 0xD, "a file cannot be mapped"
    READ_FILE_FAIL = 0xE, "a file cannot be read"
    WRITE_FILE_FAIL = 0xF, "a file cannot be written"
    INVALID_JOB_ID = 0x10, "the job does not exist"
    JOB_EXCEPTION = 0x11, "the job ended with a fault"
    JOB_TIMEOUT = 0x12, "the job did not end in time"
    OP_NOT_SUPPORTED = 0x13, "the operation is not supported"
    INVALID_OP = 0x14, "the operation is not possible in this state"
    INVALID_SIZE = 0x15, "a size or an index is not valid"
    BUF_ALLOC_FAIL = 0x16, "there is not enough device memory"
    BUF_FREE_FAIL = 0x17, "device memory cannot be freed"
    INVALID_CORE_ID = 0x18, "the core does not exist"
    RESERVE_SRAM_FAIL = 0x19, "SRAM cannot be reserved"
    INVALID_TENSOR_ID = 0x1A, "the tensor does not exist"
    INVALID_CLUSTER_ID = 0x1B, "the cluster does not exist"
    INVALID_PARTITION_ID = 0x1C, "the partition does not exist"
    PRINTF_FAIL = 0x1D, "what the kernel printed cannot be shown"
    INVALID_TENSOR_TYPE = 0x1E, "the tensor type is not valid here"
    INVALID_GM = 0x1F, "the graph's use of global memory is not valid"
    INVALID_SEGMMU = 0x20, "the graph's memory segments are not valid"
    INVALID_QOS = 0x21, "the quality of service is not valid"
    INVALID_TENSOR_CNT = 0x22, "the number of tensors is not valid"
    TIMEOUT = 0x23, "waiting took too long"
    NO_BATCH_QUEUE = 0x24, "the batch queue does not exist"
    MARK_SHARED_TENSOR = 0x25, "a tensor cannot be marked as shared"
    SET_SHARED_TENSOR = 0x26, "a shared tensor cannot be set"
    DMABUF_SHARED_IO = 0x27, "a buffer shared by an input and an output cannot be replaced"
    GET_SHAPE_FAILED = 0x28, "the graph has no dynamic shapes"
    SET_SHAPE_FAILED = 0x29, "a shape cannot be set"
    NOT_CONFIG_SHAPE = 0x30, "the shapes of a dynamic graph are not set"
    UNMATCH_OUT_SHAPE = 0x31, "an output's shape is not what was expected"
    ZERO_TENSOR_SIZE = 0x32, "a tensor's size is not known in the file"
    ALLOC_GRIP_ID = 0x33, "there is no free grid number"
    ALLOC_GROUP_ID = 0x34, "there is no free group number"
    NOT_FOUND_IN_HASHTABLE = 0x35, "a constant is not in the hash table"
    INVALID_COREDUMP = 0x36, "the core dump is not valid"
    JOB_DISPATCH_FAIL = 0x37, "the device does not take the job"
    UNKNOWN_ERROR = 0x200, "an operator reports an unknown error"
    KEYBOARD_INTERRUPT = 0x300, "interrupted from the keyboard"
    SYSTEM_ERR = 0x301, "an error of the operating system"
    OUT_OF_SPEC = 0x380, "a value is outside the specification"
    OUT_OF_AIFF_SPEC = 0x381, "a value is outside the specification of the AIFF"
    OUT_OF_TPC_SPEC = 0x382, "a value is outside the specification of the TPC"
    OUT_OF_DMA_SPEC = 0x383, "a value is outside the specification of the DMA"
    OUT_OF_MEM_RANGE = 0x400, "an address is outside memory"
    OUT_OF_SRAM_RANGE = 0x401, "an address is outside SRAM"
    OUT_OF_LSRAM0_RANGE = 0x402, "an address is outside local SRAM 0"
    OUT_OF_LSRAM1_RANGE = 0x403, "an address is outside local SRAM 1"
    OUT_OF_LSRAM_RANGE = 0x404, "an address is outside local SRAM"
    OUT_OF_GSRAM0_RANGE = 0x405, "an address is outside global SRAM 0"
    OUT_OF_GSRAM1_RANGE = 0x406, "an address is outside global SRAM 1"
    OUT_OF_GSRAM_RANGE = 0x407, "an address is outside global SRAM"
    ARITHMETIC_ERR = 0x480, "arithmetic error"
    FLOAT_POINT_ERR = 0x481, "floating point error"
    UNDERFLOW_ERR = 0x482, "underflow"
    OVERFLOW_ERR = 0x483, "overflow"
    NOT_A_NUMBER_ERR = 0x484, "not a number"
    INFINITY_ERR = 0x485, "infinity"
    STRING_LENGTH_ERR = 0x486, "a string is too long"
    ZERO_DIVISION_ERR = 0x487, "division by zero"


_BY_CODE = {status.name.lower().replace("_", "-"): status for status in Status}
_SYNONYMS = {
    "tensor-size": "INVALID_SIZE",
    "tensor-dtype": "INVALID_SIZE",
    "no-shape": "ZERO_TENSOR_SIZE",
    "no-value": "NOT_CONFIG_SHAPE",
    "kernel-timeout": "JOB_TIMEOUT",
    "job-refused": "JOB_DISPATCH_FAIL",
    "worker-died": "DEV_ABNORMAL",
    "worker-ended": "DEV_ABNORMAL",
    "no-engine": "OPEN_DEV_FAIL",
    "content-lost": "INVALID_OP",
    "other-host": "TARGET_NOT_FOUND",
}


def status_of(code: str) -> Status:
    """The status that a `CompassError.code` amounts to."""
    if code in _SYNONYMS:
        return Status[_SYNONYMS[code]]
    if code in _BY_CODE:
        return _BY_CODE[code]
    return Status.JOB_EXCEPTION if code.startswith("kernel-") else Status.INVALID_GBIN
