"""SMT-LIB scripts that a third party can read: the model as tables of facts, the rule as the formula of the text."""
