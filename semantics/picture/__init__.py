"""A picture of a model as a page that needs no server and loads nothing: the debugger, `certify`, `compare` write it.

`notes.Picture` says what is known of nodes and tensors, `boxes.boxes` makes nested boxes of a model, `layering.layered`
puts them into rows, `page.drawn` makes the data, `page.to_html` a page, and `graph.js` draws it on a canvas. The
package knows models, and must not know who asks and what the marks mean.

The drawing is our own, for three reasons. A page has to hold all that it needs in 2 MB beside 10,000 nodes, and be
painted in a second: elk takes longer for a tenth of that, dagre is quadratic in places, and either is larger than all
of this package. They place what they are given once, while bodies and calls here open and close in the reader's hands;
so only the rows and the order in them are found beforehand, in time about linear in the edges, and the page stacks
them. And every text of a page comes from a model: a few hundred lines that never make markup of a text can be read
whole by whom it concerns.

The layout is Sugiyama's with shortcuts: rows by the longest way, bounded in width; edges across a few rows are led
around boxes; order by barycenters; positions by isotonic regression towards neighbours. An edge across many rows is
shown by its two ends, and whole when one of its boxes is chosen, since most of a tangle is made of those.
"""
