"""Certification: the rules of a profile decided on one model, with findings, witnesses, requirements and conditions.

`certifier.certify` is the entry, `report` the outcome as data, `certificate` what a second party replays. It must
not know the rechecker, nor be known by it.
"""
