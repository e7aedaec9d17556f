"""What clang sees instead of a kernel text: inline assembly gives way, lines stay where they are."""

import pytest

from compassc.toolchain.unit import LineMap, translation_unit

KERNEL = "__kernel void k(__global int* a) {{\n  int x = 1;\n  {}\n  a[0] = x;\n}}\n"
STATEMENTS = {
    'asm_(1); __asm__("nop;");': "asm_(1); __compass_assembly();",
    '__asm__ volatile (\n    "a \\"(\\" ) %[x]"\n    : [x] "=&r"(x)\n    : \n    : "m"\n  );': "__compass_assembly()",
    '__asm__ inline ("a" : "=r"(x)); __asm__("b" : "=r"(x));': "__compass_assembly(); __compass_assembly();",
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_assembly_gives_way(statement):
    text = KERNEL.format(statement)
    unit = translation_unit(text, LineMap(()), "k.cl")
    assert "__asm__" not in unit.partition("#include <compass/entry.h>")[0] and STATEMENTS[statement] in unit
    places = [lines.index("  a[0] = x;") for lines in (text.splitlines(), unit.splitlines())]
    assert places[1] == places[0] + 1  # behind the directive


@pytest.mark.parametrize("statement", ['__asm__("never closed;', "int __asm__x = 1;"])
def test_what_is_none_stays(statement):
    assert statement in translation_unit(KERNEL.format(statement), LineMap(()), "k.cl")


def test_each_bracket_is_looked_at_once():
    """Of many that do not close, the time would grow with the square of their number."""
    unit = translation_unit(KERNEL.format('__asm__ ( "a"; ' * 40_000 + '__asm__("b");'), LineMap(()), "k.cl")
    assert unit.count("__asm__ (") == 40_000 and unit.count("__compass_assembly()") == 1
