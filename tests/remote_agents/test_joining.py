"""A foreign server joins, and a question asks it as it asks agents here."""

from collections.abc import Callable

from remote_hub import ForeignServer, Hub

Start = Callable[..., ForeignServer]
Serve = Callable[..., Hub]


def test_a_question_is_answered_by_an_agent_that_joined(foreign: Start, hub: Serve) -> None:
    server = foreign()
    served = hub(server.url)
    joined = served.register(server.url)
    assert joined.status_code == 201
    assert joined.json()["lease_s"] == 60
    assert joined.json()["heartbeat_interval_s"] == 20
    answer = served.query()
    assert [item["chunk_id"] for item in answer["items"]] == ["vault:foreign-1", "vault:foreign-2", "vault:foreign-3"]
    assert answer["coverage"]["documentation"]["agent_id"] == "vault"
    assert server.asked[0]["body"] == {"query_text": "where are invoices archived", "top_k": 15, "filters": {}}
    assert server.asked[0]["headers"]["traceparent"].split("-")[1] == answer["trace_id"]
    server.kill()
    gone = served.query(domains=["documentation"])
    assert gone["items"] == []
    assert gone["coverage"]["documentation"] == {"searched": False, "reason": "cannot be reached (ConnectError)"}
