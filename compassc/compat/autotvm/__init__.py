"""`tvm.autotvm`: templates with knobs, searched by the strategies of `compassc.tuning`, measured on targets of the host."""
