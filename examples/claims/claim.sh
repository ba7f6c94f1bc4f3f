#!/bin/sh
# Holds a lock for a pipeline, over several of its jobs, with nothing but curl:
#
#   claim.sh claim LOCK SECONDS REASON   wait for the lock, and hold it for so long
#   claim.sh extend SECONDS              hold it for so long from now on
#   claim.sh release                     give it up
#
# SIDECAR  address of a sidecar that serves HTTP, such as http://127.0.0.1:7183
# TOKEN    its token (--http-token-file)
# KEY      a secret of the pipeline: it makes the claim's id, with RUN
# RUN      the run of the pipeline: its jobs have the same one, and no other run has it
# WAIT     how many seconds to wait for the lock; without it, for ever
set -eu

# call prints the answer and its HTTP status. Secrets go by standard input: arguments are seen by all users of the machine.
call() {
  curl --silent --show-error --write-out '\n%{http_code}' --config - "$SIDECAR/sidekeeper.lock.v1.LockService/$1" <<END
header = "Authorization: Bearer ${TOKEN:-}"
header = "Content-Type: application/json"
data = "$(printf %s "$2" | sed 's/["\\]/\\&/g')"
END
}

# post asks again, with the same id, while there is no answer or it leaves in doubt what was done.
post() {
  for pause in 1 2 4 8 16 0; do
    answer=$(call "$1" "$2") || answer=000
    case ${answer##*
} in
      000 | 409 | 503) sleep "$pause" ;;
      *) break ;;
    esac
  done
  printf '%s\n' "${answer%
*}"
  test "${answer##*
}" = 200
}

case ${1:-} in
  claim | extend | release) : "${SIDECAR:?}" "${KEY:?}" "${RUN:?}" ;;
  *)
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p;}' "$0" >&2
    exit 64
    ;;
esac
id=$(printf '%s/%s' "$KEY" "$RUN" | sha256sum | cut -c 1-32)

case $1 in
  claim)
    reason=$(printf %s "$4" | tr -d '"\\\n')
    post Claim "{\"name\":\"$2\",\"claim_id\":\"$id\",\"reserve_for\":\"$3s\",\"reason\":\"$reason\"${WAIT:+,\"wait_timeout\":\"${WAIT}s\"}}"
    ;;
  extend) post Extend "{\"claim_id\":\"$id\",\"reserve_for\":\"$2s\"}" ;;
  release) post Release "{\"claim_id\":\"$id\"}" ;;
esac
