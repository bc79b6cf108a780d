"""The findings of part 6: what does not follow, each with the smallest graph that shows it, run by the machine."""
