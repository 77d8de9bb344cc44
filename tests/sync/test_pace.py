import pytest

from nornweave.ingest.run_status import Pace, describe


@pytest.mark.parametrize(("values", "said"), [
    ((300, 1000, "documents", 0, 0.0), "300 of 1,000 documents"),
    ((300, 1000, "documents", 0, 40.0), "300 of 1,000 documents, 40/s, 18 s left"),  # 700 / 40
    ((300, 0, "documents", 12_595, 40.0), "300 documents, 12.3 MiB, 40/s"),
    ((1, 3000, "chunks", 0, 2.5), "1 of 3,000 chunks, 2.5/s, 20 min left"),  # 2999 / 2.5 / 60
    ((1, 90_001, "chunks", 0, 10.0), "1 of 90,001 chunks, 10/s, 2.5 h left"),
    ((1000, 1000, "", 0, 40.0), "1,000 of 1,000, 40/s"),
])  # fmt: skip
def test_how_far_a_step_is(values: tuple[int, int, str, int, float], said: str) -> None:
    assert describe(*values) == said


def test_a_listing_tells_the_bytes_that_it_has_read_and_its_rate() -> None:
    now = 100.0
    pace = Pace(lambda: now)
    assert pace.describe_step("code read issues", 1024, 0) is None
    assert pace.describe_step("code list issues", 10, 0) == "10 documents, 1.0 MiB"
    now = 110.0
    assert pace.describe_step("code list issues", 60, 110) == "60 of 110 documents, 1.0 MiB, 5.0/s, 10 s left"
    assert pace.describe_step("code store", 5, 10) == "5 of 10 documents"
