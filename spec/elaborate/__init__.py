"""Elaboration: names, sorts, lengths, versions and agreement with ONNX's schemas, checked for all files together.

It offers `declarations.elaborate`, the cores of formulas (`core`, `formulas`), ONNX's signatures (`schema`) and what a
text covers (`coverage`). It reads trees and no files, and does not know how a text is rendered or executed.
"""
