"""Do two texts, or two models, mean the same: rules that are proved, and what is made of them."""
