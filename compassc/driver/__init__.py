"""Running the stages from kernel.py to aipu.bin; the command line and the Python API both build through here."""

from compassc.driver.build import Build, Request, StageRecord, run_build, run_stage
from compassc.driver.stages import STAGES, Stage, stage_named

__all__ = ["STAGES", "Build", "Request", "Stage", "StageRecord", "run_build", "run_stage", "stage_named"]
