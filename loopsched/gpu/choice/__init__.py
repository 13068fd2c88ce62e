"""Which configuration of a tiled kernel to run: estimates of all, and the few that may be best."""
