# shellcheck shell=bash
# Sourced by each task. An execution leaves one line when it starts and one when it ends, in a file
# that pg_pulse knows nothing of; `account` compares the two.
export LC_ALL=C
executions=$TMPDIR/executions
how_ended=
input=$(cat) # {"payload":…,"job":{…}}

# One write per line, appended: lines of tasks that run at the same time never mix.
began() {
    echo "start $PULSE_JOB_ID $PULSE_TOKEN $PULSE_TASK $PULSE_ATTEMPT $PULSE_WORKER_ID" \
        "$PULSE_WORKER $$ $EPOCHREALTIME" >>"$executions"
    trap 'ended terminated; exit 143' TERM
    trap '[[ -n $how_ended ]] || ended failed' EXIT
}

ended() { # completed, failed, terminated or killing; what was found out
    how_ended=$1
    echo "stop $PULSE_JOB_ID $PULSE_TOKEN $1 $EPOCHREALTIME ${2:--}" >>"$executions"
}

# Waits like somebody who asked a slow service: it costs nothing, and signals get through.
exec {silence}<> <(:)
pause() {
    read -r -t "$1" -u "$silence" || true
}

# A number of the payload or the checkpoint.
number() {
    [[ $input =~ \"$1\":\ ?([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
}
