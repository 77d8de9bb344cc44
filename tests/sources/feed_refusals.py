"""How each API refuses or answers nonsense, and what a source says then."""

from collections.abc import Mapping, Sequence

from lab.apis import confluence, github, gitlab, jira, slack
from lab.apis.server import Reply

REFUSALS: Mapping[str, Sequence[tuple[Reply, str]]] = {
    "github": ((Reply({"message": f"no, {github.TOKEN}"}, 403), "read access to issues"),),
    "gitlab": (
        (Reply({"message": f"no, {gitlab.TOKEN}"}, 401), "the token is refused; renew GITLAB_TOKEN"),
        (Reply({"error": "insufficient_scope"}, 403), "needs the scope read_api"),
        (Reply({"message": "404 Project Not Found"}, 404), "check that 'acme/tools/payments' exists"),
        (Reply(b"<html>log in</html>", headers={"content-type": "text/html"}), "no JSON in the answer"),
        (Reply([1]), "a JSON list; expected an object"),
        (Reply({"name": "payments"}), "another shape than expected"),
        (Reply({}, 429, {"ratelimit-remaining": "0", "ratelimit-reset": "3600"}), "rate limit until"),
        (Reply(status=302, headers={"location": "https://sso.example.org/login"}), "on another host"),
    ),
    "slack": (
        (Reply({"ok": False, "error": "invalid_auth"}), "the token is refused; renew SLACK_TOKEN"),
        (Reply({"ok": False, "error": "token_revoked"}), "renew SLACK_TOKEN"),
        (Reply({"ok": False, "error": "missing_scope", "needed": "users:read"}), "add the scope users:read"),
        (Reply({"ok": False, "error": "not_allowed_token_type"}), "bot token"),
        (Reply({"ok": False, "error": f"odd {slack.TOKEN} <b>"}), "try again later"),
        (Reply({"ok": False}), "no error named"),
        (Reply({"ok": True}), "no list 'members' in the answer"),
        (Reply({"ok": True, "members": {}}), "no list 'members'"),
        (Reply({"ok": True, "members": [], "response_metadata": {"next_cursor": "c:7"}}), "follows itself"),
        (Reply([]), "expected an object"),
        (Reply(b"<html>"), "no JSON"),
        (Reply({}, 401), "renew SLACK_TOKEN"),
        (Reply({}, 429, {"retry-after": "3600"}), "rate limit until"),
        (Reply({"ok": False, "error": "ratelimited"}, 200, {"retry-after": "3600"}), "rate limit until"),
    ),
    "stackexchange": (
        (Reply({"error_id": 400, "error_name": "bad_parameter", "error_message": "x"}, 400), "check that the site"),
        (Reply({"error_id": 403, "error_name": "access_denied"}, 400), "check the app key in token_env"),
        (Reply({"error_id": 405, "error_name": "key_required"}, 400), "check the app key in token_env"),
        (Reply({"error_id": 404, "error_name": "no_method"}, 404), "no_method; try again later"),
        (Reply({"items": {}}), "no list 'items' in the answer"),
        (Reply({"items": [], "has_more": True}), "goes on without saying anything new"),
        (Reply([]), "expected an object"),
        (Reply(b"<html>"), "no JSON"),
        (Reply({}, 410), "check the address"),
    ),
    "confluence": (
        (Reply({"message": f"no, {confluence.TOKEN}"}, 401), "the token is refused; renew ATLASSIAN_TOKEN"),
        (Reply({}, 403), "needs to be able to use Confluence"),
        (Reply(b"Not found", 404), "Data Center and Server have another API"),
        (Reply({"errors": [{"status": 400, "title": f"Invalid {confluence.TOKEN}"}]}, 400), "status 400: Invalid …"),
        (Reply(b"<html>log in</html>", headers={"content-type": "text/html"}), "no JSON in the answer"),
        (Reply([1]), "a JSON list; expected an object"),
        (Reply({"results": 7}), "no list 'results' in the answer"),
        (Reply({"results": []}), "no space at all; check 'user' and the token"),
        (Reply({}, 429, {"retry-after": "3600"}), "rate limit until"),
        (Reply(status=302, headers={"location": "https://id.atlassian.com/login"}), "on another host"),
        (Reply({"results": [{"id": "x", "key": "ENG"}]}), "another shape than expected"),
    ),
    "jira": (
        (Reply({"errorMessages": [f"no, {jira.TOKEN}"]}, 401), "the token is refused; renew ATLASSIAN_TOKEN"),
        (Reply({}, 200, {"x-seraph-loginreason": "AUTHENTICATED_FAILED"}), "the token is refused"),
        (Reply({}, 403), "log in once with a browser"),
        (Reply(b"Not found", 404), "Data Center and Server have another API"),
        (Reply({"deploymentType": "Server"}), "not a site of Jira Cloud"),
        (Reply({"errorMessages": [f"Bad {jira.TOKEN}"]}, 400), "status 400: Bad …"),
        (Reply(b"<html>log in</html>", headers={"content-type": "text/html"}), "no JSON in the answer"),
        (Reply([1]), "a JSON list; expected an object"),
        (Reply({}, 410), "NornWeave needs an update"),
        (Reply({}, 429, {"retry-after": "3600"}), "rate limit until"),
        (Reply(status=302, headers={"location": "https://id.atlassian.com/login"}), "on another host"),
    ),
    "feed": (
        (Reply(b""), "expected RSS or Atom: no element found"),
        (Reply(b"<p>Log in"), "expected RSS or Atom"),
        (Reply(b"<html><item/></html>"), "expected RSS or Atom, found <html>"),
        (Reply(b"", 404), "status 404"),
        (Reply(b"", 429, {"retry-after": "3600"}), "rate limit until"),
        (Reply(b'<!DOCTYPE a [<!ENTITY b "c">]><rss>&b;</rss>'), "expected RSS or Atom: EntitiesForbidden"),
    ),
}
SECRETS: Mapping[str, str] = {
    "github": github.TOKEN,
    "gitlab": gitlab.TOKEN,
    "slack": slack.TOKEN,
    "confluence": confluence.TOKEN,
    "jira": jira.TOKEN,
}
