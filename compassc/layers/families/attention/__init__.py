"""Attention as one layer, and the rotation of its vectors by their positions."""

from __future__ import annotations

from compassc.layers.declare import Attribute, DeclaredType, declare_table
from compassc.layers.families.attention.reference import attention, rotary_embedding
from compassc.operators.patterns import PatternKind

TABLE = (
    DeclaredType(
        "RotaryEmbedding",
        "Pairs of channels turned by angles that grow with the position.",
        "rare",
        (rotary_embedding, None),
        attributes=(
            Attribute("num_heads", "int", "heads of an x of three dimensions", "0"),
            Attribute("interleaved", "flag", "pairs are neighbours, not halves", "false"),
            Attribute("rotary_embedding_dim", "int", "channels that are turned; 0: all", "0"),
        ),
        inputs="x, cosines, sines, positions (or 0, 1, 2, ...)",
        notes="Positions that are not cached count as the nearest that is.",
        no_integers="its integer form leaves zero points out; keep the layer in floats (`unquantifiable=true`)",
    ),
    DeclaredType(
        "SDPAttention",
        "Softmax of products of queries and keys, times values.",
        "rare",
        (attention, None),
        attributes=(
            *(
                Attribute(f"trans_{n}", "flag", f"the last two axes of {t} are swapped", "false")
                for n, t in (("q", "queries"), ("k", "keys"), ("v", "values"))
            ),
            Attribute("enable_gqa", "flag", "several heads of queries share one of keys and values", "false"),
            Attribute("with_mask", "flag", "there is a mask, which is added", "whether there is a fourth input"),
            Attribute("scale_factor", "float", "of the products", "1"),
        ),
        inputs="queries [N,H,M,C], keys [N,H,C,K], values [N,H,K,D], mask [N,H,M,K] (or none)",
        notes="Up to 6,144 keys. For long sequences MatMul and Softmax are faster: here each query reads all keys.",
        no_integers="its integer forms have not been held against known results; use MatMul and Softmax, or floats",
    ),
)
declare_table(TABLE, PatternKind.OPAQUE)
