"""How good a built model is: accuracy on a data set, and how near each layer is to the float graph."""

from compassc.evaluation.data import DataSet, load
from compassc.evaluation.evaluating import evaluate
from compassc.evaluation.result import Evaluation, LayerResult, SubjectResult

__all__ = ["DataSet", "Evaluation", "LayerResult", "SubjectResult", "evaluate", "load"]
