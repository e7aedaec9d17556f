"""Names that a kernel's variables must not take in C."""

from __future__ import annotations

KEYWORDS = frozenset(
    """_ extern void int float double char unsigned short long if else switch case default for do while goto register
    continue break typedef struct enum union return auto const inline restrict signed sizeof static volatile asm
    kernel global local constant private lsram __kernel __global __local __constant __private __lsram half bool
    uchar ushort uint ulong bf16 size_t ptrdiff_t intptr_t uintptr_t event_t image2d_t sampler_t read_only write_only
    read_write pipe uniform true false""".split()
)
BUILTINS = frozenset(
    """AIFF ASYNC_AIFF ALL_TRUE_b ALL_TRUE_h ALL_TRUE_w CLK_LOCAL_MEM_FENCE CLK_GLOBAL_MEM_FENCE DMA_Transpose2D
    DmaDesc GET_IDLE_FLAG INFINITY MIN MemsetDDR MemsetSRAM NAN NULL REGION0 REGION1 addr_of_event_state alloc_event
    barrier ceil ceildiv clz convert_int8 cos erf exp exp2 floor free_events get_local_id get_local_size
    init_dma_desc kInt2Ext kExt2Int kDirect kTranspose kUpsample kMemset kUseless kByte kHalf kWord kGlobal
    kGlobal1 kGlobal2 kGlobal3 kLsram kShared log max min pow printf rsqrt sin sqrt tanh vceil vcos verf vexp vexp2
    vfloor vlog vmul_hi vpow vrsqrt vsin vsqrt vtanh wait_events""".split()
)
VECTOR_TYPES = frozenset(
    f"{name}{lanes}"
    for name in "char uchar short ushort int uint long ulong half float double bool bf16".split()
    for lanes in (2, 3, 4, 8, 16, 32)
)
RESERVED = KEYWORDS | BUILTINS | VECTOR_TYPES | {f"as_{t}" for t in KEYWORDS | VECTOR_TYPES}
