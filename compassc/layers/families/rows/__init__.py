"""Rows that are summed, gathered or compared by indices, and labels that are decoded."""

from __future__ import annotations

from compassc.layers.declare import Attribute, layer_type
from compassc.layers.families.rows.reference import (
    COMBINERS,
    accidental_hits,
    collapse_repeated,
    ctc_greedy,
    embedding_lookup,
    overlap_add,
    query_rebatch,
    segment_reduce,
    slot_update,
)

RESCALED = (
    Attribute("scale_value", "int", "multiplier of the sums", "1", "quantised"),
    Attribute("shift_value", "int", "shift of the sums", "0", "quantised"),
)
layer_type(
    "OverlapAdd",
    summary="Overlapping frames summed up.",
    use="rare",
    attributes=(Attribute("frame_step", "int", "elements from one frame to the next", "1"), *RESCALED),
    float=overlap_add,
    quantised=overlap_add,
)
layer_type(
    "SegmentReduce",
    summary="Sums of rows with the same id.",
    use="rare",
    inputs="x, ids",
    attributes=(Attribute("method", "word", "SUM", "SUM"), *RESCALED),
    float=segment_reduce,
    quantised=segment_reduce,
    notes="Rows without an id have the last one; ids beyond the output are left out.",
)
layer_type(
    "EmbeddingLookupSparse",
    summary="Weighted sums of rows of a table.",
    use="rare",
    inputs="table, rows of the result, ids, weights",
    attributes=(
        Attribute("combiner", "word", ", ".join(COMBINERS), "MEAN"),
        Attribute("max_norm", "word", "NONE", "NONE"),
    ),
    float=embedding_lookup,
    no_integers="its integer forms have not been held against known results; keep the layer in floats",
    notes="Where the weights of a row sum up to 0, the result is 0. Ids that are not in the table are left out.",
)
layer_type(
    "SlotUpdate",
    summary="Rows added at slots.",
    use="rare",
    inputs="x, lists of slots...",
    attributes=RESCALED,
    float=slot_update,
    quantised=slot_update,
    notes="`x` is [N, lists, rows, elements]; list `i` says to which row of the result each row of `x[:, i]` is added.",
)
layer_type(
    "QueryRebatch",
    summary="Rows gathered into batches.",
    use="rare",
    inputs="x, lists of rows...",
    float=query_rebatch,
    quantised=query_rebatch,
    notes="`x` is [N, rows, elements], the result [N, lists, places, elements]; places without a row hold 0.",
)
layer_type(
    "CollapseRepeated",
    summary="Labels without repetitions.",
    use="rare",
    inputs="labels, lengths",
    outputs="labels, lengths",
    float=collapse_repeated,
    quantised=collapse_repeated,
    notes="One label after the other; the TECs share the rows.",
)
layer_type(
    "CTCGreedyDecoder",
    summary="The best label of each step, without repetitions and blanks.",
    use="rare",
    inputs="x, lengths",
    attributes=(Attribute("merge_repeated", "flag", "labels that follow themselves come once", "true"),),
    float=ctc_greedy,
    quantised=ctc_greedy,
    notes="The last class is the blank. Behind the labels stands the largest value of the type. A length of 0 or less "
    "stands for all steps.",
)
layer_type(
    "AccidentalHits",
    summary="Where sampled classes equal true ones.",
    use="rare",
    inputs="true classes, sampled classes",
    outputs="rows, samples, number",
    float=accidental_hits,
    quantised=accidental_hits,
    notes="One pair after the other, in one TEC.",
)
