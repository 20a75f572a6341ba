"""A seeded simulation of the books: one number decides a whole world of processes, callers, clocks and crashes.

`world` is what happens, `judge` what must hold all the while, `told` what the callers and the operator know.
"""
