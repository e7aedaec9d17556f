"""`tvm.auto_scheduler`: schedules of compute graphs from sketches whose sizes are searched, measured on the host."""
