"""The layouts of task control blocks, 128 bytes each, as data.

X2: per address space an init block and its SegMMU blocks, then one block per task. X3: one block for the grid, then per
sub-graph one for the group and one per task.
"""

from __future__ import annotations

from compass_core.aipubin.fields import record, u16, u16s, u32, u32s

TCB_SIZE = 128

# interrupts a task may raise
X2_INTERRUPTS = 0x3D
X2_TEC_DONE, X2_CORE_DONE, X2_CLUSTER_DONE = 0x100, 0x200, 0x400
X3_GRID_INTERRUPTS, X3_TASK_INTERRUPTS = 9, 0x3E

# flag bits
TASK, X3_TASK = 1, 2
WAIT_PREVIOUS, WAIT_ALL = 0x10, 0x20
GROUP_END, GRID_END = 0x40, 0x80
X3_GROUP_INIT, X3_FLUSH_GRID, X3_FLUSH_GROUP = 1, 1 << 22, 1 << 21
READ_WRITE = 0x60
SEGMMU_OFF = 0x31
GROUP_VALID = 0x8000


@record(
    u32("flag"),
    u32("next"),
    u32("loop_count"),
    u32("spc"),
    u32("interrupt_en"),
    u16("group_id"),
    u16("grid_id"),
    u16("reserved"),
    u16("task_id"),
    u16s("grid_dim", 3),
    u16s("group_dim", 3),
    u16s("group_pos", 3),
    u16s("task_pos", 3),
    u32("sp"),
    u32("pp"),
    u32("dp"),
    u32("cp"),
    u32("pprint"),
    u32("pprofiler"),
    u16("core_id"),
    u16("cluster_id"),
    u16("reserved1"),
    u16("tec_id"),
    u32s("fmdp_tap_dap_pap_idp", 5),
    u32("dsize"),
    u32("tcbp"),
    u32("global_param"),
    u32s("reserved2", 3),
)
class X2Task:
    """An X2 task: entry point `spc`, stack `sp`, parameters `pp`, private data `dp`, constants `cp`."""

    flag: int = 0
    spc: int = 0
    sp: int = 0
    pp: int = 0
    dp: int = 0
    tcbp: int = 0
    task_id: int = 0
    group_id: int = 0
    group_dim: tuple[int, ...] = (1, 1, 1)
    task_pos: tuple[int, ...] = (0, 0, 0)
    next: int = 0
    loop_count: int = 0
    interrupt_en: int = X2_INTERRUPTS
    grid_id: int = 0
    reserved: int = 0
    grid_dim: tuple[int, ...] = (1, 1, 1)
    group_pos: tuple[int, ...] = (1, 0, 0)
    cp: int = 0
    pprint: int = 0
    pprofiler: int = 0
    core_id: int = 0
    cluster_id: int = 0
    reserved1: int = 0
    tec_id: int = 0
    fmdp_tap_dap_pap_idp: tuple[int, ...] = (0,) * 5
    dsize: int = 0
    global_param: int = 0
    reserved2: tuple[int, ...] = (0, 0, 0)


@record(
    u32("flag"),
    u32("next"),
    u32s("reserved", 2),
    u32("gm_ctrl"),
    u32("grid"),
    u32s("gm_region_ctrl", 2),
    u32s("gm_region_addr", 4),
    u32s("asid", 8),
    u32s("dtcm", 2),
    u32s("reserved1", 10),
)
class X2Init:
    """The head of an X2 chain: address spaces (low, high words of base with access bits) and global memory."""

    flag: int
    next: int
    asid: tuple[int, ...]
    reserved: tuple[int, ...] = (0, 0)
    gm_ctrl: int = 0
    grid: int = 0
    gm_region_ctrl: tuple[int, ...] = (0, 0)
    gm_region_addr: tuple[int, ...] = (0,) * 4
    dtcm: tuple[int, ...] = (0, 0)
    reserved1: tuple[int, ...] = (0,) * 10


@record(u32s("reserved", 6), u32s("core0", 10), u32s("reserved1", 6), u32s("core1", 10))
class X2SegMmu:
    """The segment MMU of two cores, each {control, remap, four pairs}."""

    core0: tuple[int, ...] = (SEGMMU_OFF, *(0,) * 9)
    core1: tuple[int, ...] = (SEGMMU_OFF, *(0,) * 9)
    reserved: tuple[int, ...] = (0,) * 6
    reserved1: tuple[int, ...] = (0,) * 6


@record(
    u32("flag"),
    u32("reserved"),
    u32("group_num"),
    u32("reserved1"),
    u32("interrupt_en"),
    u16("group_id"),
    u16("grid_id"),
    u32s("reserved2", 6),
    u32("gm_ctrl"),
    u32("gm_sync"),
    u32s("gm_address", 2),
    u32s("reserved3", 16),
)
class X3Grid:
    """The head of an X3 chain."""

    group_num: int
    grid_id: int
    flag: int = X3_FLUSH_GRID
    reserved: int = 0
    reserved1: int = 0
    interrupt_en: int = X3_GRID_INTERRUPTS
    group_id: int = 0
    reserved2: tuple[int, ...] = (0,) * 6
    gm_ctrl: int = 0
    gm_sync: int = 0
    gm_address: tuple[int, ...] = (0, 0)
    reserved3: tuple[int, ...] = (0,) * 16


@record(
    u32("flag"),
    u32s("segmmu", 3),
    u32("interrupt_en"),
    u16("group_id"),
    u16("grid_id"),
    u32s("seg_ctrl", 16),
    u32s("asid", 8),
    u16s("group_deps", 4),
)
class X3Group:
    """The block before the tasks of one sub-graph on X3."""

    flag: int = 0
    group_id: int = 0
    grid_id: int = 0
    asid: tuple[int, ...] = (0,) * 8
    group_deps: tuple[int, ...] = (0,) * 4
    segmmu: tuple[int, ...] = (0, 0, 0)
    interrupt_en: int = 0
    seg_ctrl: tuple[int, ...] = (0,) * 16


@record(
    u32("flag"),
    u32("next"),
    u32("reserved"),
    u32("spc"),
    u32("interrupt_en"),
    u16("group_id"),
    u16("grid_id"),
    u16("task_id"),
    u16("warmup_len"),
    u16s("grid_dim", 3),
    u16s("group_dim", 3),
    u16s("group_pos", 3),
    u16s("task_pos", 3),
    u32("sp"),
    u32("pp"),
    u32("dp"),
    u32("cp"),
    u32("pprint"),
    u32("pprofiler"),
    u16("core_id"),
    u16("cluster_id"),
    u16("reserved1"),
    u16("tec_id"),
    u32("reserved2"),
    u32("coredump"),
    u32s("reserved3", 3),
    u32("dsize"),
    u32("tcbp"),
    u32("global_param"),
    u32("reserved4"),
    u16s("group_deps", 4),
)
class X3Task:
    """An X3 task; its fields are those of X2."""

    flag: int = 0
    spc: int = 0
    sp: int = 0
    pp: int = 0
    dp: int = 0
    tcbp: int = 0
    task_id: int = 0
    group_id: int = 0
    grid_id: int = 0
    group_dim: tuple[int, ...] = (1, 1, 1)
    task_pos: tuple[int, ...] = (0, 0, 0)
    group_deps: tuple[int, ...] = (0,) * 4
    warmup_len: int = 0
    next: int = 0
    reserved: int = 0
    interrupt_en: int = X3_TASK_INTERRUPTS
    grid_dim: tuple[int, ...] = (1, 1, 1)
    group_pos: tuple[int, ...] = (1, 0, 0)
    cp: int = 0
    pprint: int = 0
    pprofiler: int = 0
    core_id: int = 0
    cluster_id: int = 0
    reserved1: int = 0
    tec_id: int = 0
    reserved2: int = 0
    coredump: int = 0
    reserved3: tuple[int, ...] = (0,) * 3
    dsize: int = 0
    global_param: int = 0
    reserved4: int = 0
