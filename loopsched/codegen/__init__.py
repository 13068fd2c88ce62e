"""Schedules as running code: what a kernel computes, how it is cut, and its text for LLVM and C."""
