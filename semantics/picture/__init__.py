"""A picture of a model as a page that needs no server and loads nothing: the debugger, `certify`, `compare` write it.

`notes.Picture` says what is known of nodes and tensors, `boxes.boxes` makes nested boxes of a model, `layering.layered`
puts them into rows, `page.drawn` makes the data, `page.to_html` a page, and `graph.js` draws it on a canvas. The
package knows models, and must not know who asks and what the marks mean.

The drawing is our own, for three reasons. A page is to be made and painted at once: of a drawn graph with 1,000 boxes,
one and a half edges each, elkjs 0.12.1 needed 7 seconds and dagre 3.1.3 needed 11 (Node 20, two shared cores), the
layout here a thirtieth of a second, and for 10,000 half a second; elkjs alone would fill most of the 2 MB that a page
may have. They place what they are given once, while bodies and calls here open and close in the reader's hands: only
the rows and the order in them are found beforehand, in time about linear in the edges, and the page stacks them. And
every text of a page comes from a model: a few hundred lines that never make markup of a text can be read whole.

The layout is Sugiyama's with shortcuts: rows by the longest way, bounded in width; edges across a few rows are led
around boxes; order by barycenters; positions by isotonic regression towards neighbours. An edge across many rows is
shown by its two ends, and whole when one of its boxes is chosen, since most of a tangle is made of those.
"""
