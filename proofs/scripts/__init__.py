"""The proofs of the theorems of part 6: one file for each family, data that the suite hands to the kernel.

A script can fail, and cannot make a theorem by itself.
"""
