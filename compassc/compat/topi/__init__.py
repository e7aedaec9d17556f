"""Operators by the framework's names and signatures (`tvm.topi`): calls of operators of Relay, or expressions of their own."""
