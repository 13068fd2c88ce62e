"""Plots: each takes data and an ``Axes``, and returns the ``Axes``.

A module a plot.  In each of them ``*_rows`` gives the data of a plot as rows
of plain values, and ``plot_*`` draws them; matplotlib is loaded only to draw.
Without ``ax`` a plot makes a figure of its own, as wide as a printed page.
"""
