#!/bin/sh
# Does a job once a day, on whichever machine comes first, and never twice. Run it under a lock, on every machine that has it in its crontab:
#
#     5 3 * * * root sidekeeper lock run cron/reports --wait 30m -- /opt/daily.sh cron/reports make-reports --all
#
# The lock sees to it that no two machines are at it at the same time, also when a job takes longer than a day. That a machine whose
# clock is behind finds the day taken is what the key in the configuration is for: only the first can write it. It is written before the
# job, so that a job that failed halfway is not done twice either; delete the key to have it done again.
set -eu

key=$1/$(date -u +%F)
shift

status=0
sidekeeper config put "$key" "$(hostname)" --if-missing >/dev/null 2>&1 || status=$?
case $status in
0) exec "$@" ;;
75) echo "$key is taken: $(sidekeeper config get "$key")" >&2 ;;
*) exit "$status" ;;
esac
