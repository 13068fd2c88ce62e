"""Schedules: loops in order, their notation, operations on them."""
