"""TFLite models: every operator against a runtime of TFLite, where one is installed (`pip install ai-edge-litert`)."""

import pytest

from compassc.importers.tflite import import_bytes
from tests.importers.test_tflite_models import FLOATS, QUANTISED, arrays_for, check

interpreter = pytest.importorskip("ai_edge_litert.interpreter")
OTHER_IN_RUNTIMES = {
    "hybrid": "they round activations to 8 bits first",
    "div": "quotients near 0 overflow there (LiteRT 2.3)",
}


@pytest.mark.parametrize(("module", "name"), [*FLOATS, *QUANTISED])
def test_a_runtime_gives_the_same(module, name, chained):
    if name in OTHER_IN_RUNTIMES:
        pytest.skip(OTHER_IN_RUNTIMES[name])
    content = module.build(name)
    given = arrays_for(content, name)
    plain = interpreter.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    runtime = interpreter.Interpreter(model_content=content, experimental_op_resolver_type=plain)
    runtime.allocate_tensors()
    for info, array in zip(runtime.get_input_details(), given, strict=True):
        runtime.set_tensor(info["index"], array)
    runtime.invoke()
    found = [runtime.get_tensor(info["index"]) for info in runtime.get_output_details()]
    for got, want in zip(chained(import_bytes(content), *given), found, strict=True):
        check(got, want, module, name)
