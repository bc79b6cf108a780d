"""The small-step machine (G, M): states, rules, schedules, memory and its allocation, traces, inputs and outputs.

It offers `execution.run`, `transitions`, `state`, and `judging` of an operator's results by its definition. What an
operator computes is handed in; it knows no runtime and no debugger.
"""
