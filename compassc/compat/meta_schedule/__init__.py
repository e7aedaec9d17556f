"""`tvm.meta_schedule`: schedules of blocks by rules whose choices are searched, measured on the host."""
