"""Lower bounds: what no schedule at all can do better.

Names are imported from the modules; `loopsched` exports the public ones.
"""
