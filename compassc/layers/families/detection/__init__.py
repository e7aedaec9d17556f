"""Layers of detectors, and of images: known, and refused with the reason."""

from __future__ import annotations

from compassc.layers.declare import Fusion, layer_type

LISTS = "how many results it gives follows from the values, so it is run on the host, behind the network"
ROIS = "it samples a feature map at places that are values of another tensor, for which there is no kernel yet"
DECODING = "it decodes boxes and drops those with low scores, so it is run on the host, behind the network"
REFUSED = {
    LISTS: {
        "NMS": ("Boxes without those that overlap a better one.", "common"),
        "FilterBoxes": ("Boxes with enough score and size.", "rare"),
        "GetValidCount": ("Rows with enough score, packed.", "rare"),
        "PostNMS1": ("The boxes that a suppression kept.", "rare"),
        "PostNMS2": ("The boxes of a list of classes that a suppression kept.", "rare"),
        "CTCGreedyDecoder": ("The best label of each step, without repetitions and blanks.", "rare"),
        "AccidentalHits": ("Where sampled classes equal true ones.", "rare"),
    },
    DECODING: {
        "DecodeBox": ("Boxes from anchors and their offsets, by class.", "sometimes"),
        "DetectionOutput": ("Boxes from proposals and their offsets, by class.", "sometimes"),
        "BoundingBox": ("Boxes from proposals and their offsets.", "sometimes"),
        "MultiboxTransformLoc": ("Boxes from prior boxes, with the best class of each.", "sometimes"),
        "Proposal": ("Regions with their scores from anchors.", "sometimes"),
        "GenerateProposals": ("Regions from anchors, after suppression.", "sometimes"),
        "Region": ("Boxes of a YOLO head.", "sometimes"),
        "RegionFuse": ("Boxes of several YOLO heads.", "sometimes"),
        "RefineDetDetection": ("Boxes refined in two steps.", "rare"),
    },
    ROIS: {
        "HeatmapMaxKeypoint": ("The place and score of a heat map's maximum.", "rare"),
    },
}
for _reason, _types in REFUSED.items():
    for _name, (_summary, _use) in _types.items():
        layer_type(_name, summary=_summary, use=_use, fusion=Fusion.OPAQUE, refused=_reason)
