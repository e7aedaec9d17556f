from module_text import module_text

from compassc import pass_manager
from compassc.ir import parse_module
from compassc.ir.exprs import Var
from compassc.ir.stmts import Alloc, Let
from compassc.ir.visit import rename_vars, walk_stmts


def names(module):
    return [
        s.var.name if type(s) is Let else s.buffer.data.name
        for s in walk_stmts(module.functions[0].body)
        if type(s) in (Let, Alloc)
    ]


def test_later_ones_get_numbers():
    text = 'a: T.int32 = n\nb: T.int32 = a\nc = T.alloc((4,), "int32", "lsram")\nd: T.int32 = b\nc[0] = d'
    module = parse_module(module_text(text, "n: T.int32"))

    def same_names(f):
        mapping = {s.var: Var("n", s.var.dtype) for s in f.body if type(s) is Let and s.var.name != "b"}
        mapping.update({s.buffer.data: Var("b", s.buffer.data.dtype) for s in f.body if type(s) is Alloc})
        return f.replace(body=rename_vars(f.body, mapping))

    module = module.map_functions(same_names)
    assert names(module) == ["n", "b", "b", "n"]
    after = pass_manager.run_pipeline(("UniquifyVarName",), module, pass_manager.PassOptions(verify=True))
    assert names(after) == ["n_1", "b", "b_1", "n_2"]
    assert pass_manager.run_pipeline(("UniquifyVarName",), after) is after
