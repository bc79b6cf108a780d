from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

F, D, H = np.float32, np.float64, np.float16
Run = Callable[..., Any]
Check = Callable[[Any, Any], None]
RNG = np.random.default_rng(25)
VERSIONS = (23, 24, 25)


def _draw(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(F)


def _close(found: Any, expected: Any) -> None:
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found.astype(D), expected, rtol=2e-6, atol=2e-6)


def _weights(scores: Any) -> Any:
    with np.errstate(invalid="ignore"):
        e = np.exp(scores - scores.max(-1, keepdims=True))
        return np.nan_to_num(e / e.sum(-1, keepdims=True))


def _heads(x: Any, heads: int) -> Any:
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


# ---- Swish and SwiGLU ---------------------------------------------------------------------------


def test_swish_is_the_element_times_its_sigmoid(run: Run, same: Check) -> None:
    x = np.array([-3, -0.0, 0, 2], F)
    _close(run("Swish", 24, x, alpha=0.5), x / (1 + np.exp(-0.5 * x.astype(D))))
    same(run("Swish", 24, np.array([np.nan, np.inf, -np.inf, -0.0], F)), np.array([np.nan, np.inf, np.nan, -0.0], F))


def test_swiglu_is_swish_times_the_other_input(run: Run, refused: Run) -> None:
    a, b = _draw(2, 3), _draw(2, 3)
    _close(run("SwiGLU", 28, a, b), a / (1 + np.exp(-a.astype(D))) * b)
    assert "B: T[d...]" in refused("SwiGLU", 28, a, b[:1])


# ---- RotaryEmbedding ----------------------------------------------------------------------------


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("part", [0, 4])
def test_rotation_is_multiplication_of_complex_numbers(interleaved: int, part: int, run: Run, same: Check) -> None:
    x, angles = _draw(2, 3, 5, 6), _draw(7, (part or 6) // 2)
    places = RNG.integers(0, 7, size=(2, 5))
    head = x[..., : part or 6].astype(D)
    pairs = head.reshape(2, 3, 5, -1, 2) if interleaved else head.reshape(2, 3, 5, 2, -1).swapaxes(-1, -2)
    turned = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * angles[places].astype(D))[:, None]
    both = np.stack([turned.real, turned.imag], -1 if interleaved else -2).reshape(head.shape)
    stated = {"interleaved": interleaved, "rotary_embedding_dim": part}
    caches = np.cos(angles.astype(D)).astype(F), np.sin(angles.astype(D)).astype(F)
    found = run("RotaryEmbedding", 23, x, *caches, places, **stated)
    _close(found, np.concatenate([both, x[..., part or 6 :]], -1))
    same(run("RotaryEmbedding", 23, x, *(it[places] for it in caches), **stated), found)
    packed = x.swapaxes(1, 2).reshape(2, 5, 18)
    same(
        run("RotaryEmbedding", 23, packed, *caches, places, num_heads=3, **stated),
        found.swapaxes(1, 2).reshape(2, 5, 18),
    )


def test_rotary_embedding_refuses_what_has_no_pairs(refused: Run) -> None:
    x, cache = _draw(1, 1, 2, 4), _draw(3, 2)
    at = np.array([[0, 2]])

    def why(*inputs: Any, **attributes: Any) -> str:
        return refused("RotaryEmbedding", 23, *inputs, **attributes)

    assert "3 or 4 axes" in why(x[0, 0], cache, cache, at)
    assert "num_heads" in why(x[0], cache, cache, at[:, :1])
    assert "even" in why(_draw(1, 1, 2, 3), cache, cache, at)
    assert "are rotated are pairs" in why(x, cache, cache, at, rotary_embedding_dim=6)
    assert "axis of positions" in why(x, cache, cache)
    assert "a number for each pair" in why(x, cache[:, :1], cache[:, :1], at)
    assert "one shape" in why(x, cache, cache[:2], at)
    assert "a position for each token" in why(x, cache, cache, at[:, :1])
    assert "rows of the caches" in why(x, cache, cache, at + 1)
    assert "rows of the caches" in why(x, cache, cache, at - 1)


# ---- TensorScatter ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_an_update_stands_at_its_place_in_the_cache(mode: str, run: Run, same: Check) -> None:
    cache, update = RNG.integers(0, 99, size=(3, 2, 5, 2)), -RNG.integers(1, 99, size=(3, 2, 2, 2))
    first = np.array([0, 3, 1 if mode == "linear" else 9])
    expected = cache.copy()
    for b in range(3):
        for k in range(2):
            expected[b, :, (first[b] + k) % 5] = update[b, :, k]
    same(run("TensorScatter", 24, cache, update, first, mode=mode), expected)
    same(run("TensorScatter", 24, cache, update, first, mode=mode, axis=2), expected)
    start = cache.copy()
    start[:, :, :2] = update
    same(run("TensorScatter", 24, cache, update, mode=mode), start)


def test_tensor_scatter_refuses_what_does_not_fit(refused: Run) -> None:
    cache, update = np.zeros((2, 4, 3), F), np.ones((2, 2, 3), F)

    def why(*inputs: Any, **attributes: Any) -> str:
        return refused("TensorScatter", 24, *inputs, **attributes)

    assert "counted from either end" in why(cache, update, axis=3)
    assert "not that of the batch" in why(cache, update, axis=-3)
    assert "but for the axis" in why(cache, update, axis=2)
    assert "not longer" in why(update, cache)
    assert "two words" in why(cache, update, mode="ring")
    assert "each member" in why(cache, update, np.array([0]))
    assert "No position" in why(cache, update, np.array([0, -1]))
    assert "ends within the cache" in why(cache, update, np.array([0, 3]))


# ---- Attention ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("heads", [(2, 2), (6, 2), (3, 1)])
def test_attention_is_a_weighted_mean_of_the_values(heads: tuple[int, int], version: int, run: Run) -> None:
    query, shared = heads
    q, k, v = _draw(2, 3, query * 4), _draw(2, 5, shared * 4), _draw(2, 5, shared * 2)
    Q, K, V = (_heads(x, h).astype(D) for x, h in ((q, query), (k, shared), (v, shared)))
    K, V = (np.repeat(x, query // shared, 1) for x in (K, V))
    scores = Q @ K.swapaxes(-1, -2) / 2
    mean = _weights(scores) @ V
    found = run("Attention", version, q, k, v, q_num_heads=query, kv_num_heads=shared)
    _close(found, mean.swapaxes(1, 2).reshape(2, 3, -1))
    apart = (_heads(x, h) for x, h in ((q, query), (k, shared), (v, shared)))
    _close(run("Attention", version, *apart), mean)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_mode_shows_a_stage_of_the_scores(version: int, run: Run) -> None:
    q, k, v, mask = _draw(1, 2, 3, 4), _draw(1, 2, 5, 4), _draw(1, 2, 5, 2), _draw(3, 5)
    scores = q.astype(D) @ k.astype(D).swapaxes(-1, -2) * 0.25
    capped = 1.5 * np.tanh(scores / 1.5)
    biased = capped + mask
    stated = {"softcap": 1.5, "scale": 0.25}
    for mode, stage in enumerate((scores, capped, biased, _weights(biased))):
        y, _, _, shown = run("Attention", version, q, k, v, mask, count=4, qk_matmul_output_mode=mode, **stated)
        _close(shown, stage)
        _close(y, _weights(biased) @ v.astype(D))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_past_stands_before_the_keys_and_moves_the_causal_frontier(version: int, run: Run, same: Check) -> None:
    q, k, v, pk, pv = _draw(1, 1, 2, 3), _draw(1, 1, 2, 3), _draw(1, 1, 2, 3), _draw(1, 1, 2, 3), _draw(1, 1, 2, 3)
    keys, values = np.concatenate([pk, k], 2), np.concatenate([pv, v], 2)
    y, present_key, present_value, w = run(
        "Attention", version, q, k, v, None, pk, pv, count=4, is_causal=1, qk_matmul_output_mode=3
    )
    same(present_key, keys)
    same(present_value, values)
    assert (w[0, 0] == 0).tolist() == [[False, False, False, True], [False] * 4]
    scores = np.where(w == 0, -np.inf, q.astype(D) @ keys.swapaxes(-1, -2).astype(D) / np.sqrt(3))
    _close(y, _weights(scores) @ values.astype(D))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_query_without_keys_gives_zero_also_beside_infinite_values(version: int, run: Run, same: Check) -> None:
    q, k, v = _draw(1, 1, 2, 3), _draw(1, 1, 2, 3), np.array([[[[np.inf], [np.nan]]]], F)
    mask = np.array([[False, False], [True, False]])
    y, _, _, w = run("Attention", version, q, k, v, mask, count=4, qk_matmul_output_mode=3)
    same(w, np.array([[[[0, 0], [1, 0]]]], F))
    same(y, np.array([[[[0], [np.nan]]]], F))
    same(run("Attention", version, q, k[:, :, :0], v[:, :, :0]), np.zeros((1, 1, 2, 1), F))


@pytest.mark.parametrize("version", [24, 25])
def test_keys_of_the_padding_are_not_seen_and_the_frontier_ends_at_the_others(version: int, run: Run) -> None:
    q, k, v = _draw(3, 1, 2, 3), _draw(3, 1, 4, 3), _draw(3, 1, 4, 3)
    lengths = np.array([4, 3, 1])
    seen = {
        0: [[[1, 1, 1, 1]] * 2, [[1, 1, 1, 0]] * 2, [[1, 0, 0, 0]] * 2],
        1: [[[1, 1, 1, 0], [1, 1, 1, 1]], [[1, 1, 0, 0], [1, 1, 1, 0]], [[0, 0, 0, 0], [1, 0, 0, 0]]],
    }
    for causal, expected in seen.items():
        inputs = (q, k, v, None, None, None, lengths)
        _, _, _, w = _shown(run, version, inputs, is_causal=causal)
        assert (w[:, 0] != 0).astype(int).tolist() == expected


def _shown(run: Run, version: int, inputs: tuple[Any, ...], **attributes: Any) -> Any:
    """The four outputs without the present keys and values, which lengths exclude."""
    from sonnx.semantics.operators.application import Application, Outputs
    from sonnx.semantics.operators.compiled.ieee import apply

    stated = {"qk_matmul_output_mode": 3, **attributes}
    done = apply(Application("Attention", version, inputs, stated, (True, False, False, True)))
    assert isinstance(done, Outputs), done
    return done.values


@pytest.mark.parametrize(("left", "right"), [(-1, -1), (0, 0), (1, -1), (-1, 1), (2, 1)])
@pytest.mark.parametrize("past", [0, 2])
def test_a_window_bounds_the_distance_of_keys(left: int, right: int, past: int, run: Run) -> None:
    q, k, v = _draw(1, 1, 3, 2), _draw(1, 1, 4, 2), _draw(1, 1, 4, 2)
    cache = (None, _draw(1, 1, past, 2), _draw(1, 1, past, 2))
    _, _, _, w = run(
        "Attention",
        25,
        q,
        k,
        v,
        *cache,
        count=4,
        qk_matmul_output_mode=3,
        left_window_size=left,
        right_window_size=right,
    )
    ahead = np.arange(4 + past) - (np.arange(3) + past)[:, None]
    assert ((w[0, 0] != 0) == (((left < 0) | (-ahead <= left)) & ((right < 0) | (ahead <= right)))).all()


@pytest.mark.parametrize("version", [24, 25])
def test_a_mask_that_is_too_short_hides_the_last_keys(version: int, run: Run) -> None:
    q, k, v = _draw(1, 1, 2, 3), _draw(1, 1, 3, 3), _draw(1, 1, 3, 3)
    for mask in (np.ones((2, 1), np.bool_), np.zeros((1, 2), F), np.ones(2, np.bool_)):
        _, _, _, w = run("Attention", version, q, k, v, mask, count=4, qk_matmul_output_mode=3)
        assert (w[0, 0] != 0).tolist() == [[j < mask.shape[-1] for j in range(3)]] * 2


def test_softmax_precision_is_the_type_of_the_softmax(run: Run) -> None:
    q, k = np.ones((1, 1, 1, 1), H), np.array([0, -9], H).reshape(1, 1, 2, 1)
    _, _, _, narrow = run("Attention", 23, q, k, k, count=4, qk_matmul_output_mode=3)
    _, _, _, wide = run("Attention", 23, q, k, k, count=4, qk_matmul_output_mode=3, softmax_precision=1)
    assert narrow.dtype == wide.dtype == H
    assert wide[0, 0, 0, 1] == H(1 / (1 + np.exp(9)))
    assert narrow[0, 0, 0, 1] == H(np.exp(H(-9)))


@pytest.mark.parametrize("version", VERSIONS)
def test_attention_refuses_what_it_has_no_meaning_for(version: int, refused: Run) -> None:
    q, k, v = _draw(2, 2, 3, 4), _draw(2, 1, 5, 4), _draw(2, 1, 5, 2)
    pk, pv = _draw(2, 1, 2, 4), _draw(2, 1, 2, 2)
    p = (q.reshape(2, 6, 4), k.reshape(2, 5, 4), v.reshape(2, 5, 2))

    def why(*inputs: Any, count: int = 1, **attributes: Any) -> str:
        return refused("Attention", version, *inputs, count=count, **attributes)

    assert "3 axes, or 4" in why(q, k, v[0])
    assert "are those of the inputs" in why(q, k, v, q_num_heads=1)
    assert "as many query heads" in why(q, *(np.repeat(x, 3, 1) for x in (k, v)))
    assert "as many query heads" in why(*p)
    assert "divide the last one" in why(*p, q_num_heads=3, kv_num_heads=3)
    assert "one type" in why(q, k, v.astype(H))
    assert "size of a query" in why(q, k[..., :3], v)
    assert "a value for each key" in why(q, k, v[:, :, :4])
    assert "past_key and past_value" in why(q, k, v, None, pk)
    assert "shape of keys" in why(q, k, v, None, pk[..., :3], pv)
    assert "each past key" in why(q, k, v, None, pk, pv[:, :, :1])
    assert "broadcasts to the scores" in why(q, k, v, np.ones((2, 5), np.bool_))
    assert "that of Q" in why(q, k, v, np.ones((3, 5), np.int32))
    assert "scale is not" in why(q, k, v, scale=-1.0)
    assert "softcap is not" in why(q, k, v, softcap=-1.0)
    assert "is_causal" in why(q, k, v, is_causal=2)
    assert "softmax_precision" in why(q, k, v, softmax_precision=6)
    assert "0, 1, 2 or 3" in why(q, k, v, qk_matmul_output_mode=4)
    assert "present_key and present_value" in why(q, k, v, count=2)
    if version > 23:
        lengths = np.array([5, 3])
        assert "together with past and present" in why(q, k, v, None, pk, pv, lengths)
        assert "together with past and present" in why(q, k, v, None, None, None, lengths, count=3)
        assert "each member" in why(q, k, v, None, None, None, lengths[:1])
        assert "numbers of keys" in why(q, k, v, None, None, None, lengths + 1)
        assert "covers the keys" in why(q, k, v, np.ones((3, 4), np.bool_), None, None, lengths)
    if version > 24:
        assert "at least 0, or none" in why(q, k, v, left_window_size=-2)


# ---- CausalConvWithState ------------------------------------------------------------------------


def test_a_causal_convolution_in_steps_is_one_over_the_whole(run: Run, same: Check) -> None:
    x, w, b = (
        RNG.integers(-3, 4, size=(2, 3, 7)).astype(F),
        RNG.integers(-3, 4, size=(3, 1, 4)).astype(F),
        np.ones(3, F),
    )
    whole, last = run("CausalConvWithState", 27, x, w, b, count=2)
    padded = np.concatenate([np.zeros((2, 3, 3), F), x], 2)
    same(whole, sum(padded[:, :, k : k + 7] * w[:, 0, k, None] for k in range(4)) + F(1))
    same(last, x[:, :, -3:])
    first, state = run("CausalConvWithState", 27, x[:, :, :2], w, b, count=2)
    same(state, np.concatenate([np.zeros((2, 3, 1), F), x[:, :, :2]], 2))
    rest, state = run("CausalConvWithState", 27, x[:, :, 2:], w, b, state, count=2)
    same(np.concatenate([first, rest], 2), whole)
    same(state, last)


def test_causal_convolution_special_cases(run: Run, refused: Run) -> None:
    x, w, state = _draw(1, 2, 3), _draw(2, 1, 3), _draw(1, 2, 2)
    plain = run("CausalConvWithState", 27, x, w, None, state).astype(D)
    for word in ("silu", "swish"):
        _close(run("CausalConvWithState", 27, x, w, None, state, activation=word), plain / (1 + np.exp(-plain)))
    assert "one channel" in refused("CausalConvWithState", 27, x, _draw(2, 2, 3), count=2)
    assert "not empty" in refused("CausalConvWithState", 27, x, _draw(2, 1, 0), count=2)
    assert "a position less" in refused("CausalConvWithState", 27, x, w, None, x, count=2)
    assert "three words" in refused("CausalConvWithState", 27, x, w, count=2, activation="relu")


# ---- LinearAttention ----------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("single", [False, True])
def test_linear_attention_follows_its_recurrence(rule: str, single: bool, run: Run) -> None:
    q, k, v, past = _draw(2, 4, 4 * 3), _draw(2, 4, 2 * 3) / F(4), _draw(2, 4, 2 * 5), _draw(2, 2, 3, 5)
    decay = -np.abs(_draw(2, 4, 2 if single else 6)) if "gated" in rule else None
    beta = np.abs(_draw(2, 4, 1 if single else 2)) if "delta" in rule else None
    inputs = (q, k, v, past, decay, beta) if beta is not None else (q, k, v, past, decay)
    y, state = run("LinearAttention", 27, *inputs, count=2, q_num_heads=4, kv_num_heads=2, update_rule=rule)
    S = past.astype(D)
    for t in range(4):
        kt, vt, qt = k[:, t].reshape(2, 2, 3).astype(D), v[:, t].reshape(2, 2, 5).astype(D), q[:, t].reshape(2, 4, 3)
        if decay is not None:
            S = S * np.exp(decay[:, t].reshape(2, 2, -1).astype(D))[..., None]
        if beta is not None:
            vt = beta[:, t].reshape(2, -1, 1) * (vt - np.einsum("bgij,bgi->bgj", S, kt))
        S = S + kt[..., None] * vt[..., None, :]
        _close(y[:, t], np.einsum("bhij,bhi->bhj", S.repeat(2, 1), qt).reshape(2, -1) / np.sqrt(3))
    _close(state, S)


def test_linear_attention_special_cases(run: Run, refused: Run, same: Check) -> None:
    q, past = _draw(1, 2, 4), _draw(1, 2, 2, 2)
    stated = {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear"}
    y, state = run("LinearAttention", 27, q[:, :0], q[:, :0], q[:, :0], past, count=2, **stated)
    assert y.shape == (1, 0, 4)
    same(state, past)
    half = q.astype(H)
    assert [x.dtype for x in run("LinearAttention", 27, half, half, half, count=2, **stated)] == [H, H]
    assert [x.dtype for x in run("LinearAttention", 27, half, half, half, past, count=2, **stated)] == [H, F]
    same(
        run("LinearAttention", 27, q, q, q, scale=2.0, **stated),
        2 * run("LinearAttention", 27, q, q, q, scale=1.0, **stated),
    )

    def why(*inputs: Any, **changed: Any) -> str:
        return refused("LinearAttention", 27, *inputs, count=2, **{**stated, **changed})

    assert "as many query heads" in why(q, q, q, q_num_heads=1)
    assert "divide queries" in why(q[..., :3], q, q)
    assert "size of a query" in why(q, q[..., :2], q)
    assert "each key head" in why(q, q, q, past[:, :1])
    assert "four words" in why(q, q, q, update_rule="rwkv")
    assert "decay is there" in why(q, q, q, update_rule="gated")
    assert "decay is there" in why(q, q, q, None, q)
    assert "beta is there" in why(q, q, q, update_rule="delta")
    assert "each element of a key" in why(q, q, q, None, q[..., :3], update_rule="gated")
    assert "beta has" in why(q, q, q, None, None, q, update_rule="delta")
