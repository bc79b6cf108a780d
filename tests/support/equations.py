"""Equations of Einsum with the shapes of their operands, such as NumPy evaluates too."""

from __future__ import annotations

EQUATIONS = [
    ("ij,jk", (2, 3), (3, 5)),
    ("ij,jk->ki", (2, 3), (3, 5)),
    ("bij, bjk -> bik", (4, 2, 3), (4, 3, 5)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("i,j", (2,), (5,)),
    ("i->", (7,)),
    ("->", ()),
    (",->", (), ()),
    ("ijk->kji", (2, 3, 5)),
    ("...ij,...jk->...ik", (2, 3, 5), (2, 5, 2)),
    ("...i->...", (2, 3, 5)),
    ("...ii->...i", (2, 3, 3)),
    ("i...,i...", (2, 3, 1), (2, 1, 5)),
    ("a,b,c,ab->cba", (2,), (3,), (5,), (2, 3)),
    ("bA,bB->AB", (3, 2), (3, 5)),
    ("zya,az", (2, 3, 5), (5, 2)),
    ("ij,ij->j", (0, 3), (0, 3)),
    ("ij->i", (2, 0)),
]
