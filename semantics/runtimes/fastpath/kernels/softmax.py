"""Softmax and LogSoftmax, and the losses: how far scores are from the right classes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from ..functions import summing, through_double
from ..kernel import Allocate, Array, Compute, Inputs, Kernel, Outputs, Site, unprepared
from ..products import widened
from ..reading import asked, integer, optional, require, tensor, text
from .reduction import total


def _prepared(site: Site, logarithm: bool) -> Compute:
    stated = integer(site, "axis", -1 if site.version >= 13 else 1)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x = tensor(inputs, 0)
        require(-x.ndim <= stated < x.ndim, "axis is an axis of the input, counted from either end")
        axis = stated % x.ndim
        out = allocate(x.shape, x.dtype)
        if x.size == 0:
            return (out,)
        data, target = x, out
        if site.version < 13:
            shape = (math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
            data, target, axis = x.reshape(shape), out.reshape(shape), 1
        np.subtract(data, np.max(data, axis=axis, keepdims=True), out=target)
        exp, log = through_double(np.exp)(x.dtype), through_double(np.log)(x.dtype)
        if logarithm:
            powers = allocate(target.shape, x.dtype)
            exp(target, powers)
            sums = _sums(powers, axis)
            log(sums, sums)
            np.subtract(target, sums, out=target)
        else:
            exp(target, target)
            np.divide(target, _sums(target, axis), out=target)
        return (out,)

    return compute


def _sums(x: Array, axis: int) -> Array:
    return widened(np.sum(x, axis=axis, dtype=summing(x.dtype), keepdims=True), x.dtype)


def _softmax(site: Site) -> Compute:
    return _prepared(site, False)


def _log_softmax(site: Site) -> Compute:
    return _prepared(site, True)


# ---- Losses ---------------------------------------------------------------------------------------

REDUCTIONS: Final = ("none", "sum", "mean")


def _total(x: Array) -> Array:
    """The sum of all elements, of rank 0."""
    return total(x, tuple(range(x.ndim))).reshape(())


def _log_of_softmax(x: Array) -> Array:
    """LogSoftmax along the second axis; each operation is rounded."""
    top = np.max(x.astype(summing(x.dtype)), axis=1, keepdims=True, initial=-np.inf).astype(x.dtype)
    below = np.subtract(x, top)
    powers = np.empty_like(below)
    through_double(np.exp)(x.dtype)(below, powers)
    sums = total(powers, (1,))
    through_double(np.log)(x.dtype)(sums, sums)
    return np.asarray(np.subtract(below, sums))


def _loss(site: Site, logs: Array, target: Array, weight: Array | None, allocate: Allocate) -> Array:
    """The loss of each target, their sum, or their mean."""
    reduction = text(site, "reduction", "mean")
    require(reduction in REDUCTIONS, "reduction is none, sum or mean")
    require(logs.ndim >= 2, "the scores have an axis of classes")
    count, dtype = logs.shape[1], logs.dtype
    require(target.shape == (logs.shape[0], *logs.shape[2:]), "there is a target for each vector of scores")
    require(weight is None or weight.shape == (count,), "there is a weight for each class")
    ignore = integer(site, "ignore_index") if "ignore_index" in site.attributes else None
    kept = np.ones(target.shape, bool) if ignore is None else np.not_equal(target, ignore)
    valid = (target >= 0) & (target < count) | np.logical_not(kept)
    require(bool(np.all(valid)), "each target is a class, or ignore_index")
    classes = np.where(kept, target, 0)
    weights, losses = np.zeros(target.shape, dtype), np.zeros(target.shape, dtype)
    if kept.any():
        logs_there = np.take_along_axis(logs, np.expand_dims(classes, 1), 1)[:, 0]
        chosen = np.ones(target.shape, dtype) if weight is None else weight[classes]
        np.copyto(weights, chosen, where=kept)
        np.copyto(
            losses,
            np.negative(logs_there) if weight is None else np.multiply(np.negative(logs_there), chosen),
            where=kept,
        )
    out = allocate(target.shape if reduction == "none" else (), dtype)
    match reduction:
        case "none":
            np.copyto(out, losses)
        case "sum":
            np.copyto(out, _total(losses))
        case _:
            np.copyto(out, np.divide(_total(losses), _total(weights)))
    return out


@unprepared
def _likelihood(site: Site, inputs: Inputs, allocate: Allocate) -> Outputs:
    return (_loss(site, tensor(inputs, 0), tensor(inputs, 1), optional(inputs, 2), allocate),)


@unprepared
def _cross_entropy(site: Site, inputs: Inputs, allocate: Allocate) -> Outputs:
    scores = tensor(inputs, 0)
    require(scores.ndim >= 2, "the scores have an axis of classes")
    logs = _log_of_softmax(scores)
    loss = _loss(site, logs, tensor(inputs, 1), optional(inputs, 2), allocate)
    if not asked(site, 1):
        return loss, None
    out = allocate(logs.shape, logs.dtype)
    np.copyto(out, logs)
    return loss, out


KERNELS: Final[Mapping[str, tuple[Kernel, ...]]] = {
    "Softmax": (Kernel(1, 13, _softmax),),
    "LogSoftmax": (Kernel(1, 13, _log_softmax),),
    "NegativeLogLikelihoodLoss": (Kernel(12, 22, _likelihood),),
    "SoftmaxCrossEntropyLoss": (Kernel(12, 13, _cross_entropy),),
}
