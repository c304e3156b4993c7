from __future__ import annotations

from memory_node.ingest.counts import NS, MessageCounts


def test_the_rate_is_over_the_last_ten_seconds() -> None:
    counts = MessageCounts()
    for i in range(41):
        counts.arrive(i * NS // 2, "t")
    assert counts.rate(20 * NS) == 2.1 and counts.rate(40 * NS) == 0.0
    assert counts.age(23 * NS) == 3.0 and MessageCounts().age(0) is None


def test_a_message_that_arrives_while_the_rate_is_asked_for_does_no_harm() -> None:
    counts = MessageCounts()

    class Arrival(int):
        """While it is looked at another one arrives."""

        def __rsub__(self, other: int) -> int:
            counts.arrive(9 * NS, "t")
            return other - int(self)

    for i in range(5):
        counts.arrive(Arrival(i * NS), "t")
    assert counts.rate(10 * NS) == 0.5


def test_refusals_in_a_row_are_a_problem_until_one_message_is_good() -> None:
    counts = MessageCounts()
    assert counts.problem == ""
    counts.refuse("empty text")
    assert counts.problem == "every message was refused: empty text"
    counts.take(True)
    for reason in ("empty text", "negative stamp"):
        counts.refuse(reason)
        assert counts.problem == "", "one now and then is no problem"
    counts.refuse("negative stamp")
    assert counts.problem == "the last 3 refused: negative stamp"
    counts.take(False)
    assert counts.problem == "" and (counts.taken, counts.thinned, counts.refused) == (1, 1, 4)
