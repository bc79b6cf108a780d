"""Threads that share work: each part is done once, errors come back, and several callers do not wait for ever."""

from __future__ import annotations

import os
import threading
import weakref

import numpy as np
import pytest
from sonnx.semantics.runtimes.fastpath import workers


@pytest.fixture(autouse=True)
def three_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "THREADS", 3)


@pytest.mark.parametrize("parts", [0, 1, 2, 3, 50])
def test_each_part_is_done_once(parts: int) -> None:
    done: list[int] = []
    workers.shared(parts, lambda part, _: done.append(part))
    assert sorted(done) == list(range(parts))


def test_parts_at_the_same_time_have_workers_of_their_own() -> None:
    meet, seen = threading.Barrier(3, timeout=20), set()

    def work(_part: int, worker: int) -> None:
        meet.wait()
        seen.add(worker)

    workers.shared(3, work)
    assert seen == {0, 1, 2}


def test_an_error_is_raised_where_the_work_was_asked_for_after_all_parts() -> None:
    done: list[int] = []

    def work(part: int, _worker: int) -> None:
        done.append(part)
        if part == 4:
            raise KeyError("four")

    with pytest.raises(KeyError, match="four"):
        workers.shared(9, work)
    assert sorted(done) == list(range(9))


def test_callers_in_several_threads_get_their_own_results() -> None:
    found: dict[int, list[int]] = {}

    def call(number: int) -> None:
        mine: list[int] = []
        for _ in range(30):
            workers.shared(7, lambda part, _: mine.append(part + 100 * number))
        found[number] = mine

    callers = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for it in callers:
        it.start()
    for it in callers:
        it.join(30)
    assert {n: sorted(it) for n, it in found.items()} == {
        n: sorted([*range(100 * n, 100 * n + 7)] * 30) for n in range(8)
    }


def test_nobody_holds_work_that_is_done() -> None:
    def work(_part: int, _worker: int) -> None:
        """Nothing to do."""

    held = weakref.ref(work)
    workers.shared(9, work)
    del work
    assert held() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system forks no processes")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    workers.shared(3, lambda *_: None)
    child = os.fork()
    if not child:
        done: list[int] = []
        workers.shared(40, lambda part, _: done.append(part))
        os._exit(0 if len(done) == 40 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    ("stated", "found"),
    [
        ({}, 4),
        ({"OMP_NUM_THREADS": "2"}, 2),
        ({"SONNX_THREADS": "2", "OMP_NUM_THREADS": "3"}, 2),
        ({"OPENBLAS_NUM_THREADS": "1"}, 4),
        ({"SONNX_THREADS": "0", "OMP_NUM_THREADS": "many"}, 4),
    ],
)
def test_the_environment_says_how_many_threads_work(stated: dict[str, str], found: int) -> None:
    assert workers.threads_of(stated, 4) == found


@pytest.mark.parametrize("lead", [0, 0.3, 0.9, 1])
@pytest.mark.parametrize(("count", "parts"), [(0, 3), (1, 3), (7, 3), (7, 0), (6, 2), (100, 7)])
def test_cuts_cover_everything_once_without_empty_slices(count: int, parts: int, lead: float) -> None:
    pieces = workers.cuts(count, parts, lead)
    assert [n for it in pieces for n in range(count)[it]] == list(range(count))
    assert all(it.start < it.stop for it in pieces)


def test_the_first_part_is_greater_by_what_is_done_until_others_begin() -> None:
    assert [it.stop - it.start for it in workers.cuts(100, 2)] == [50, 50]
    assert [it.stop - it.start for it in workers.cuts(100, 2, 0.2)] == [60, 40]
    assert [it.stop - it.start for it in workers.cuts(90, 3, 0.5)] == [60, 15, 15]
    assert workers.cuts(100, 2, 1) == [slice(0, 100)]


def test_the_settings_of_numpy_are_as_before_afterwards() -> None:
    before = np.getbufsize(), np.geterr()
    with workers.for_rows():
        assert np.getbufsize() != before[0]
    assert (np.getbufsize(), np.geterr()) == before


# ---- BLAS -------------------------------------------------------------------------------------


@pytest.fixture
def threads_of_blas(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """An OpenBLAS that counts its threads: the last number is that now."""
    numbers = [8]
    monkeypatch.setattr(workers._BLAS, "functions", (lambda: numbers[-1], numbers.append))
    return numbers


def test_openblas_is_held_to_one_thread_until_the_last_who_wants_that_has_ended(threads_of_blas: list[int]) -> None:
    first, second = workers.with_one_thread_of_blas(), workers.with_one_thread_of_blas()
    first.__enter__()
    second.__enter__()
    with workers.with_threads_of_blas():
        assert threads_of_blas == [8, 1, 8]
    first.__exit__(None, None, None)
    assert threads_of_blas == [8, 1, 8, 1]
    second.__exit__(None, None, None)
    assert threads_of_blas == [8, 1, 8, 1, 8]
    with workers.with_threads_of_blas():
        assert len(threads_of_blas) == 5


def test_openblas_has_its_threads_back_wherever_a_run_is_interrupted(
    threads_of_blas: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    def called(stop: int, result: int) -> int:
        nonlocal calls
        calls += 1
        if calls == stop:
            raise KeyboardInterrupt
        return result

    def interrupted(*, before: int = 0, after: int = 0) -> None:
        nonlocal calls
        calls = 0

        def set_to(number: int) -> None:
            called(before, 0)
            threads_of_blas.append(number)
            called(after, 0)

        monkeypatch.setattr(workers._BLAS, "functions", (lambda: called(before, threads_of_blas[-1]), set_to))
        with pytest.raises(KeyboardInterrupt), workers.with_one_thread_of_blas():
            raise KeyboardInterrupt
        assert threads_of_blas[-1] == 8 and not workers._BLAS.users

    interrupted()
    interrupted(before=1)  # while the number is asked for
    interrupted(before=2)  # before it is set
    interrupted(after=1)  # after that


def test_an_error_in_a_product_gives_openblas_its_threads_back(threads_of_blas: list[int]) -> None:
    with pytest.raises(ZeroDivisionError):
        workers.shared_products(5, lambda part, _: 1 // part, 2)
    assert threads_of_blas == [8, 1, 8]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system forks no processes")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_that_is_forked_during_a_run_has_the_threads_of_before(threads_of_blas: list[int]) -> None:
    child = 1
    with workers.with_one_thread_of_blas():
        child = os.fork()
        free = threads_of_blas[-1] == 8 and not workers._BLAS.users
    if not child:  # where the run ends too
        with workers.with_one_thread_of_blas():
            free = free and threads_of_blas[-1] == 1
        os._exit(0 if free and threads_of_blas[-1] == 8 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_products_are_shared_where_openblas_obeys_and_they_are_great(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers._BLAS, "functions", (lambda: 1, lambda _: None))
    assert [workers.product_parts(k * workers._TERMS) for k in (0, 1, 2, 9)] == [1, 1, 2, 3]
    monkeypatch.setattr(workers._BLAS, "functions", None)
    assert workers.product_parts(9 * workers._TERMS) == 1


def test_the_openblas_of_numpy_gives_and_takes_the_number_of_its_threads() -> None:
    if workers._BLAS.functions is None:
        pytest.skip("NumPy has another BLAS")
    get, _ = workers._BLAS.functions
    before = get()
    with workers.with_one_thread_of_blas():
        assert get() == 1
    assert get() == before
