"""The report of `sonnx prove`: lines, JSON, pictures, questions as SMT-LIB, and the tables of README.md."""
