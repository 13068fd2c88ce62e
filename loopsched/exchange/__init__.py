"""What other tools read and write: Timeloop, ZigZag, code, tables.

Every function that writes says what the other form cannot hold: see
`loopsched.exchange.exported.Exported.lost`.
"""
