"""Formulas broken on purpose, one at a time, to see that the suite notices."""
