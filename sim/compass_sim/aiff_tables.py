"""`python -m compass_sim.aiff_tables`: write the headers with registers and rules of the AIFF for its model in C (sim/engine).

Their source is `compass_core.aiff`: the tables of registers, and what the model knows of each field.
"""

from __future__ import annotations

from compass_core import files
from compass_core.aiff import GENERATIONS
from compass_core.aiff.registers import ACTIVATION, CONTROL, PARAMETER, Field, Generation, Register, Unit, units_of
from compass_core.aiff.rules import ASSUMPTIONS, MODELLED, Group, Rule, groups
from compass_sim.engine import source_folder

FIELDS = """
TWIN_DISABLED_0 mtp twin_ctrl.mtp_0_disen
TWIN_DISABLED_1 mtp twin_ctrl.mtp_1_disen
TWIN_MODE mtp twin_ctrl.twin_op_mode
MTP_MODE mtp[] ctrl.op_mode
MTP_REGION mtp[] ctrl.w_region_id
MTP_ROW_STRIDE mtp[] iact_w_stride.iact_width_stride
MTP_SURFACE_STRIDE mtp[] iact_s_stride.iact_surface_stride
MTP_CHANNELS mtp[] act_c_ctrl.iact_chan
MTP_OUT_CHANNELS mtp[] act_c_ctrl.oact_chan
MTP_WIDTH mtp[] act_w_ctrl.iact_width
MTP_OUT_WIDTH mtp[] act_w_ctrl.oact_width
MTP_HEIGHT mtp[] act_h_ctrl.iact_height
MTP_OUT_HEIGHT mtp[] act_h_ctrl.oact_height
MTP_FORMAT mtp[] wt_compress.compression_format
MTP_WEIGHT_UNITS mtp[] wt_compress.wt_size
LUT_GLOBAL itp mode_ccfg.lut_glb_mode
LUT_FETCHED_0 itp mode_ccfg.lut0_ft_en
LUT_FETCHED_1 itp mode_ccfg.lut1_ft_en
M0_BYPASS itp[] m0_ccfg.byp
M0_SHIFT itp[] m0_ccfg.mul_trsh
M0_RELU_BYPASS itp[] m0_ccfg.relu_byp
M0_FACTOR itp[] m0_mul_pcfg.mul_pval
M1_BYPASS itp[] m1_ccfg.byp
E_BYPASS itp[] e_ccfg.byp
E_FACTOR itp[] e_mul_pcfg.mul_pval
LUT_BYPASS itp[] lut_ocfg.byp
ITP_HEIGHT itp[] act_ccfg0.act_height
ITP_WIDTH itp[] act_ccfg0.act_width
ITP_CHANNELS itp[] act_ccfg1.act_chan
PTP_MODE ptp mode.mode
PTP_FORMAT ptp mode.op_fmt
PTP_KERNEL_W ptp kernel.kernel_w
PTP_KERNEL_H ptp kernel.kernel_h
PTP_STRIDE_W ptp kernel.stride_w
PTP_STRIDE_H ptp kernel.stride_h
PTP_CHANNELS ptp act_c_ctrl.iact_chan
PTP_OUT_CHANNELS ptp act_c_ctrl.oact_chan
PTP_WIDTH ptp act_w_ctrl.iact_width
PTP_OUT_WIDTH ptp act_w_ctrl.oact_width
PTP_HEIGHT ptp act_h_ctrl.iact_height
PTP_OUT_HEIGHT ptp act_h_ctrl.oact_height
PTP_ROW_STRIDE ptp iact_w_stride.iact_width_stride
PTP_SURFACE_STRIDE ptp iact_surf_stride.iact_surface_stride
WRB_REGIONS wrb mode_ctrl.region_en
WRB_NHWC wrb mode_ctrl.fmt_trans
WRB_BYPASS wrb mode_ctrl.region_bypass
WRB_LINE_STRIDE_0 wrb region0_oact_l_stride.oact_line_stride
WRB_LINE_STRIDE_1 wrb region1_oact_l_stride.oact_line_stride
WRB_SURFACE_STRIDE_0 wrb region0_oact_s_stride.oact_surface_stride
WRB_SURFACE_STRIDE_1 wrb region1_oact_s_stride.oact_surface_stride
"""
"""The fields whose values the model computes with: its name of each, unit (`[]`: of a sub-unit), register and field."""
WORDS = """
WEIGHTS mtp[] weight_addr
BIASES itp[] m0_alu_mcfg
TABLE itp lut_mcfg,lut_mcfg0
SECOND_TABLE itp lut_mcfg,lut_mcfg1
MTP_INPUT mtp[] iact_addr
PTP_INPUT ptp iact_addr
OUTPUT_0 wrb region0_oact_addr
OUTPUT_1 wrb region1_oact_addr
"""
"""The words of parameter and activation descriptors it uses; of several registers the one that the generation has."""
_EXACT, _OR_DEFAULT = 0, 1
_WIDTH = 120
_HEAD = "/* Registers and rules of the AIFF. Written by `python -m compass_sim.aiff_tables` from compass_core/aiff. */"


def _registers(generation: str, unit: str) -> dict[str, Register]:
    owner: Unit = units_of(generation)[unit.removesuffix("[]")]
    return owner.repeated if unit.endswith("[]") else owner.shared


def _stride(generation: str, unit: str) -> int:
    return units_of(generation)[unit.removesuffix("[]")].stride if unit.endswith("[]") else 0


def _rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.split("\n") if line]


def _place(generation: str, unit: str, path: str) -> str:
    """Where a field lies: `{address, stride, low bit, bits}`; all 0 where the generation does not have it."""
    register, _, name = path.partition(".")
    found = _registers(generation, unit).get(register)
    if found is None or name not in found.by_name:
        return "{0, 0, 0, 0}"
    field = found.by_name[name]
    return f"{{{found.address:#x}, {_stride(generation, unit):#x}, {field.low}, {_bits(field)}}}"


def _bits(field: Field) -> int:
    return field.high - field.low + 1


def _word(generation: str, unit: str, names: str) -> str:
    """The word of a register in its descriptor: `{of the parameters, word, words from sub-unit to sub-unit}`."""
    registers = _registers(generation, unit)
    register = next((registers[name] for name in names.split(",") if name in registers), None)
    if register is None:
        return "{0, 0, 0}"
    step = register.words[1] - register.words[0] if len(register.words) > 1 else 0
    return f"{{{int(register.kind == PARAMETER)}, {register.words[0]}, {step}}}"


def _mask(values: frozenset[int]) -> int:
    assert all(0 <= value < 32 for value in values), values
    return sum(1 << value for value in values)


def _rule(group: Group, register: Register, field: Field, rule: Rule) -> str:
    path = f"{group.unit}{'[]' if group.repeated else ''}.{register.name}.{field.name}"
    kind = _EXACT if rule.mark == MODELLED else _OR_DEFAULT
    values = _mask(rule.values or frozenset())
    trusts = [f"{{{list(ASSUMPTIONS).index(name)}, {_mask(allowed):#x}}}" for name, allowed in rule.assumed]
    assert len(trusts) <= 2, "struct aiff_rule has room for two"
    return (
        f'{{"{path}", {register.address:#x}, {field.low}, {_bits(field)}, {kind}, {field.default:#x}, {values:#x}, '
        f"{{{', '.join(trusts) or '{0}'}}}}}"
    )


def _constant(name: str) -> str:
    return name.upper().replace("-", "_")


def _enum(name: str, items: list[str], count: str) -> list[str]:
    return [f"enum {name} {{", *_filled([*items, count]), "};", ""]


def _tables_of(generation: str) -> list[str]:
    all_rules: list[str] = []
    spans: list[str] = []
    for group in groups():
        fields = group.fields(generation)
        rules = [_rule(group, *item) for item in fields if item[2].values is not None]
        unit = f"{group.unit}{'[]' if group.repeated else ''}"
        spans.append(f"{{{int(bool(fields))}, {len(all_rules)}, {len(rules)}, {_stride(generation, unit):#x}}}")
        all_rules += rules
    name = generation.lower()
    return _array("struct aiff_rule", f"{name}_rules", all_rules) + _array("struct aiff_group", f"{name}_groups", spans)


def _array(kind: str, name: str, items: list[str]) -> list[str]:
    return [f"static const {kind} {name}[] = {{", *_filled(items), "};", ""]


def _filled(items: list[str]) -> list[str]:
    """Items on as few lines as they need."""
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + len(item) + 2 <= _WIDTH:
            lines[-1] += f" {item},"
        else:
            lines.append(f"    {item},")
    return lines


def _defaults(generation: str) -> list[str]:
    """The control registers of a generation: address and default."""
    items = []
    for unit in units_of(generation).values():
        parts = [(unit.shared, 0)] + [(unit.repeated, k * unit.stride) for k in range(unit.count)]
        for registers, offset in parts:
            items += [
                f"{{{register.address + offset:#x}, {register.default:#x}}}"
                for register in registers.values()
                if register.kind == CONTROL
            ]
    return _array("struct aiff_register", f"{generation.lower()}_registers", items)


def _generation(generation: str) -> list[str]:
    """The tables of a generation."""
    name = generation.lower()
    return [
        *_tables_of(generation),
        *_defaults(generation),
        *_array("struct aiff_place", f"{name}_places", [_place(generation, *row[1:]) for row in _rows(FIELDS)]),
        *_array("struct aiff_word", f"{name}_words", [_word(generation, *row[1:]) for row in _rows(WORDS)]),
    ]


def _summary(generation: str) -> str:
    name, sizes = generation.lower(), Generation(generation, units_of(generation)).lengths
    count = f"sizeof {name}_registers / sizeof *{name}_registers"
    return (
        f"{{{name}_rules, {name}_groups, {name}_registers, {count}, {name}_places, {name}_words, "
        f"{sizes[PARAMETER]}, {sizes[ACTIVATION]}}}"
    )


def headers() -> dict[str, str]:
    """The headers by name: assumptions, the tables of each generation, and what puts these together."""
    names = _enum("aiff_assumption", [f"ASSUME_{_constant(name)}" for name in ASSUMPTIONS], "ASSUMPTIONS")
    together = [f'#include "aiff_{generation.lower()}.h"' for generation in GENERATIONS]
    names += ["#define AIFF_ASSUMPTION_NAMES \\", "  " + ", ".join(f'"{name}"' for name in ASSUMPTIONS), ""]
    together += ["", *_array("char *const", "aiff_assumptions", ["AIFF_ASSUMPTION_NAMES"])]
    together += _array("struct aiff_generation", "aiff_generations", [_summary(name) for name in GENERATIONS])
    keys = [
        *_enum("aiff_group_name", [f"GROUP_{_constant(group.name)}" for group in groups()], "GROUPS"),
        *_enum("aiff_field_name", [row[0] for row in _rows(FIELDS)], "FIELDS"),
        *_enum("aiff_word_name", [row[0] for row in _rows(WORDS)], "WORDS"),
    ]
    found = {"aiff_names.h": names, "aiff_tables.h": ['#include "aiff.h"', *together, *keys]}
    found |= {f"aiff_{name.lower()}.h": ['#include "aiff.h"', "", *_generation(name)] for name in GENERATIONS}
    return {name: _header(name, lines) for name, lines in found.items()}


def _header(name: str, lines: list[str]) -> str:
    guard = f"ENGINE_{name.upper().replace('.', '_')}"
    return "\n".join([_HEAD, f"#ifndef {guard}", f"#define {guard}", "", *lines, "#endif", ""])


def main() -> int:
    """Writes the headers beside the engine's other sources."""

    for name, text in headers().items():
        files.write(source_folder() / name, text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
