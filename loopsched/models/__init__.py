"""Models: what a schedule moves between memory levels, and how long that takes."""
