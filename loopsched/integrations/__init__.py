"""Hooks for other tools: they ask for a kernel's configuration and go on alone if there is none."""
