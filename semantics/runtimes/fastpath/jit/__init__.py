"""Native code for the fast path: whole subgraphs as one list of operations, run by one function that Numba compiles.

`provider` offers subgraphs and runs them; `lowering`, and `quantized`, turn nodes, at known shapes, into `operations`;
`routines` compute them, `vectors` brings the instructions that Numba lacks; `loading` compiles once and keeps the code,
as an `image` where that can be made. Only `vectors`, `routines` and `loading` import Numba, when the first subgraph is
run and no code is kept.
"""
