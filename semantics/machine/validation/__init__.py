"""The validator of traces: each recorded step of a real run is checked against the rules of part 3 and part 4.

It offers `validating.validate`. It is a second party to the machine. It shares with it the model as `semantics.model`
gives it, with the elements of tensors, and the meaning of operators, which is handed in: the caller gives the compiled
texts, by which the machine computed too, so a defect of these is not found here. Reading of lines and their chain of
hashes (`lines`), the memory of N bytes with its regions and the bytes of values (`layout`), the premises and results of
the rules (`rules`), the order of steps (`order`), and why a run is over (`ending`) are its own, written from the text
again. That the graph is well-formed is judged from the text (`wellformed`). It must not know the machine.
"""
