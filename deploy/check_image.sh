#!/usr/bin/env bash
# Smoke test of an image: init, sync, query and up in a folder of a user's own, with a read-only root and no rights.
#   deploy/check_image.sh [IMAGE]      ENGINE, RUN_OPTIONS and PORT as `make check-image` passes them
set -euo pipefail
image=${1:-nornweave} engine=${ENGINE:-docker} port=${PORT:-18082} limit_mb=${LIMIT_MB:-900}
token='a token of 32 characters: @/%#' folder=$(mktemp -d) name=nornweave-check-$$
trap '$engine rm --force "$name" >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

size=$(( $($engine image inspect --format '{{.Size}}' "$image") / 1000000 ))
echo "size: $size MB"
(( size <= limit_mb )) || fail "larger than $limit_mb MB"
[[ $($engine image inspect --format '{{.Config.User}}' "$image") == 10001:10001 ]] || fail "does not run as 10001"
$engine image inspect --format '{{json .}}' "$image" | grep -qi 'healthcheck.*127.0.0.1:8082/health' || fail "has no health check"

mkdir "$folder/handbook" "$folder/src"
printf '# Limits\n\nThe webhook timeout is 30 seconds.\n' > "$folder/handbook/limits.md"
printf 'WEBHOOK_TIMEOUT_S = 30\n\n\ndef send(url: str) -> None:\n    """Send one webhook."""\n' > "$folder/src/webhooks.py"
owner="$(id -u):$(id -g)"
[[ $owner == 0:* ]] && { owner=12345:12345; chown -R "$owner" "$folder"; }
# shellcheck disable=SC2086
run() { $engine run --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges --user "$owner" \
  --volume "$folder:/data" ${RUN_OPTIONS:-} "$@"; }

run --rm "$image" --version
run --rm "$image" init
run --rm "$image" sync
run --rm "$image" query 'webhook timeout' --json | grep -q '"source_path": *"limits.md"' || fail "query does not find the handbook"
run --rm --entrypoint sh "$image" -c '! touch /opt/nornweave/x 2>/dev/null' || fail "the root can be written"
if run --rm "$image" up --host 0.0.0.0 2>"$folder/refused"; then fail "listens for everybody without a token"; fi
grep -q NORNWEAVE_SERVICE_TOKEN "$folder/refused" || fail "does not say that a token is missing: $(cat "$folder/refused")"

run --detach --name "$name" --publish "127.0.0.1:$port:8082" --env NORNWEAVE_SERVICE_TOKEN="$token" "$image" >/dev/null
[[ ${RUN_OPTIONS:-} == *"--network host"* ]] && port=8082
ready() { curl -fsS -o /dev/null -H "authorization: Bearer $token" "http://127.0.0.1:$port/ready"; }
for _ in $(seq 120); do ready 2>/dev/null && break; sleep 2; done
ready || fail "is not ready: $($engine logs "$name" 2>&1 | tail -20)"
ask() { curl -sS -o "$folder/answer" -w '%{http_code}' -H 'content-type: application/json' -d '{"query": "webhook timeout"}' "$@" "http://127.0.0.1:$port/query"; }
[[ $(ask) == 401 ]] || fail "answers without the token: $(cat "$folder/answer")"
[[ $(ask -H "authorization: Bearer $token") == 200 ]] || fail "$($engine logs "$name" 2>&1 | tail -20; cat "$folder/answer")"
grep -q 'WEBHOOK_TIMEOUT_S' "$folder/answer" || fail "the answer lacks the code"
$engine exec "$name" python -c "import urllib.request as r; r.urlopen('http://127.0.0.1:8082/health', timeout=5)" || fail "is not healthy"
$engine stop --time 20 "$name" >/dev/null
[[ $($engine inspect --format '{{.State.ExitCode}}' "$name") == 0 ]] || fail "does not stop on SIGTERM"
echo "image $image: init, sync, query, up, token, health check and stop are as they should be"
