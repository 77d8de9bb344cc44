"""Facts contradict each other when they are about one thing and their values cannot both be true."""

import random

from fact_support import located
from hypothesis import given
from hypothesis import strategies as st

from nornweave.disagree.conflicts import LocatedFact, find_conflicts
from nornweave.disagree.conflicts.comparable import keys_of, pairs
from nornweave.disagree.conflicts.decision import shipped


def names(facts: list[LocatedFact]) -> list[str]:
    return [one.name for one in find_conflicts(facts)]


def test_a_documented_default_that_the_code_does_not_have_is_a_conflict() -> None:
    (conflict,) = find_conflicts(
        [located("worker_timeout", "60 seconds", "docs/settings.md"), located("worker_timeout", "30", "settings.py")]
    )
    assert (conflict.first.path, conflict.second.path) == ("settings.py", "docs/settings.md")
    assert conflict.name == "worker timeout"
    assert "60 seconds" in conflict.explanation.replace("1 minute", "60 seconds")
    assert "30" in conflict.explanation
    assert 0.5 <= conflict.confidence < 1


def test_spelling_and_units_are_no_contradiction() -> None:
    assert (
        names([located("request_timeout_ms", "40000", "a.py"), located("requestTimeout", "40 seconds", "a.md")]) == []
    )


def test_one_side_does_not_contradict_itself() -> None:
    assert names([located("worker_timeout", "60", "a.py"), located("worker_timeout", "30", "b.py")]) == []
    assert names([located("worker_timeout", "60", "a.md"), located("worker_timeout", "30", "b.md")]) == []


def test_another_setting_with_the_same_last_word_is_another_setting() -> None:
    assert names([located("boot_timeout", "60", "a.py"), located("shutdown_timeout", "30", "a.md")]) == []


def test_a_path_that_goes_on_below_an_owner_names_another_setting() -> None:
    mode = located("strategy", "race", "config.go", owner="pools")
    said = "| pools.start.strategy | no | wait |"
    nested = located("strategy", "wait", "docs/a.md", owner="configuration pools start", statement=said)
    same = located("strategy", "wait", "docs/a.md", owner="configuration pools", statement="| pools.strategy | wait |")
    assert [*pairs([mode, nested])] == []
    assert [*pairs([mode, same])] == [(0, 1)]
    assert [*pairs([located("strategy", "race", "config.go", owner="pools start"), nested])] == [(0, 1)]


def test_a_minimum_and_a_recommendation_contradict_no_default() -> None:
    default = located("upload_part_size", "50 MiB", "store.py")
    assert names([default, located("upload_part_size", "5 MiB", "docs/store.md")]) == ["upload part size"]
    assert names([default, located("min_upload_part_size", "5 MiB", "docs/store.md")]) == []
    for side in ("research", "conversation"):
        said = located("upload_part_size", "8 MiB", "a.txt", side=side, form="sentence")
        assert names([default, said]) == ["upload part size"]
        recommended = located("upload_part_size", "8 MiB", "a.txt", side=side, form="sentence", qualifiers=("hedged",))
        assert names([default, recommended]) == []


def test_a_path_below_the_folder_is_the_path() -> None:
    assert names([located("upload_folder", "'./data'", "a.py"), located("upload_folder", "'data/'", "a.md")]) == []
    assert names([located("upload_folder", "'../data'", "a.py"), located("upload_folder", "'data'", "a.md")]) != []


def test_a_definition_that_agrees_settles_the_fact() -> None:
    facts = [
        located("batch_size", "10", "a.md"),
        located("batch_size", "10", "a.py"),
        located("batch_size", "20", "b.py"),
    ]
    assert names(facts) == []


def test_the_owner_tells_definitions_apart() -> None:
    page = located("poolSize", "10", "docs/reader.md", section="Reference > BlobReader")
    same = located("poolSize", "20", "src/reader.py", owner="blob reader")
    other = located("poolSize", "10", "src/writer.py", owner="blob writer")
    (conflict,) = find_conflicts([page, other, same])
    assert conflict.first is same


def test_a_comment_of_a_longer_name_is_not_about_the_code_of_a_shorter_one_in_its_file() -> None:
    said = located("spare_workers", "40", "pools.rb", side="documentation", form="field")
    assert names([said, located("workers", "0", "pools.rb")]) == []
    assert names([said, located("spare_workers", "30", "pools.rb")]) == ["spare workers"]


def test_siblings_do_not_meet() -> None:
    page = located("poolSize", "10", "docs/writer.md", section="Reference > BlobWriter", owner="blob writer")
    code = located("poolSize", "20", "src/pools.py", owner="blob reader")
    assert names([page, code]) == []


def test_a_denied_value_contradicts_itself() -> None:
    page = located("json_strict", "true", "a.md", negated=True)
    assert names([page, located("json_strict", "true", "a.py")]) == ["json strict"]
    assert names([page, located("json_strict", "false", "a.py")]) == []


def test_what_an_older_version_stated_is_not_compared() -> None:
    facts = [
        located("retries", value, path, attribute="type", kind="type") for value, path in (("3", "a.md"), ("5", "a.py"))
    ]
    assert find_conflicts(facts, min_confidence=0.0) == []


def test_the_same_two_values_again_are_one_conflict_with_more_places() -> None:
    code = located("worker_timeout", "30", "a.py")
    pages = [located("worker_timeout", "60", "a.md", line=line) for line in (1, 40)]
    (conflict,) = find_conflicts([code, *pages])
    assert [one.fact.line for one in conflict.also] == [40]


values = st.sampled_from(["1", "2", "30 seconds", "true", "false", "'x'", "none", "[1, 2]"])
paths = st.sampled_from(["a.py", "b.py", "a.md", "b.md", "c.rst"])
written = st.sampled_from(["worker_timeout", "timeout", "WORKER_TIMEOUT", "max_size", "pool.size"])


@given(st.lists(st.builds(located, written, values, paths, line=st.integers(0, 50)), max_size=12), st.randoms())
def test_order_of_the_facts_does_not_matter(facts: list[LocatedFact], chance: random.Random) -> None:
    found = find_conflicts(facts)
    shuffled = facts[:]
    chance.shuffle(shuffled)
    assert [(one.name, one.confidence) for one in find_conflicts(shuffled)] == [
        (one.name, one.confidence) for one in found
    ]
    assert all(one.first.fact.side != one.second.fact.side for one in found)


def test_pairs_share_a_key() -> None:
    facts = [located("timeout", "1", "a.py", owner="webhook"), located("webhook_timeout", "2", "a.md")]
    assert list(pairs(facts)) == [(0, 1)]
    assert keys_of(facts[0].fact) & keys_of(facts[1].fact) == {"webhook timeout"}


def test_the_shipped_model_has_a_weight_for_every_feature_and_no_other() -> None:
    from nornweave.disagree.conflicts.decision import features

    known = features(located("a_b", "1", "a.py"), located("a_b", "2", "a.md"))
    assert set(shipped().weights) <= set(known)
