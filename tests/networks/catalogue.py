"""All whole networks of the tests."""

from __future__ import annotations

from tests.networks.further_models import FURTHER
from tests.networks.models import MODELS

NETWORKS = MODELS | FURTHER
"""What makes a network's model, by name."""
