"""What people see: tables, notebooks, plots, the page."""
