# shellcheck shell=bash
# shellcheck disable=SC2154
# Sourced by `run`: what can be seen of the tasks and the workers from outside.

sql() {
    psql -XAtq -v ON_ERROR_STOP=1 "$@"
}

note() {
    echo "$EPOCHREALTIME $*" >>"$folder/timeline"
}

say() {
    note said "$*"
}

fail() {
    if [[ -n $narrator ]]; then say "FAILED: $*"; else echo "demo: $*" >&2; fi
    exit 1
}

# The moment between two looks; nothing ever comes through this pipe.
exec {silence}<> <(:)
moment() {
    read -r -t 0.04 -u "$silence" || true
    if [[ $is_interrupted == yes ]]; then exit 130; fi
}

# Looks until the command succeeds; gives up when the whole demonstration takes too long.
wait_until() { # what is waited for, command…
    local what=$1
    shift
    until "$@"; do
        [[ $SECONDS -lt $most_seconds ]] || fail "waited in vain until $what (load $(cut -d" " -f1 /proc/loadavg)); see $folder"
        if in_timeline given_up; then fail "workers die at once, see $folder/workers"; fi
        moment
    done
}

# The jobs of a task, with commas between them.
ids_of() { # task
    awk -v task="$1" '$2 == task { list = list (list ? "," : "") $1 } END { print list }' \
        "$folder/ledger"
}

count_added() { # [task that does not count]
    awk -v task="${1:-}" '$2 != task { n++ } END { print n + 0 }' "$folder/ledger"
}

# The jobs that some worker's log says were completed.
completed() {
    cat "$folder"/workers/*.log |
        sed -n 's/.*"event":"completed","job":\([0-9]*\),.*/\1/p' | sort -u
}

all_completed() { # [but for those of this task]
    [[ $(completed | wc -l) -ge $(count_added "${1:-}") ]]
}

# "JOB WORKER_ID WORKER PID ATTEMPT" of the executions that have started and not ended. What was
# killed leaves no other trace than that its job starts again, so the last one of each job counts.
running() { # task
    awk -v task="$1" '
        $1 == "start" && $4 == task { line[$2] = $2 " " $6 " " $7 " " $8 " " $5; token[$2] = $3 }
        $1 == "stop" && token[$2] == $3 { delete line[$2] }
        END { for (job in line) print line[job] }' "$folder/executions" | sort -n
}

running_on() { # task, worker id, [first: only first attempts]
    running "$1" | awk -v id="$2" -v only="${3:-}" '$2 == id && (!only || $5 == 1) { print $1 }'
}

processes_on() { # task, worker id
    running "$1" | awk -v id="$2" '$2 == id { print $4 }'
}

# The workers that run this task, fewest jobs first: "COUNT WORKER_ID WORKER".
workers_running() { # task, [first: only first attempts]
    running "$1" | awk -v only="${2:-}" '!only || $5 == 1 { n[$2 " " $3]++ }
        END { for (worker in n) print n[worker], worker }' | sort -n
}

has_running() { # task, count
    [[ $(running "$1" | wc -l) -eq $2 ]]
}

# Whether the last execution of each of these jobs is another worker's.
ran_elsewhere() { # worker id, job…
    local id=$1
    shift
    awk -v id="$id" -v jobs="$*" '
        BEGIN { n = split(jobs, wanted, " ") }
        $1 == "start" { last[$2] = $6 }
        END { for (i = 1; i <= n; i++) if (last[wanted[i]] == id) exit 1 }' "$folder/executions"
}

pid_of() { # worker
    awk -v name="$1" '$2 == "started" && $3 == name { pid = $4 } END { print pid }' \
        "$folder/timeline"
}

live_workers() {
    awk '$2 == "started" { live[$4] = 1 } $2 == "ended" { delete live[$4] }
        END { for (pid in live) print pid }' "$folder/timeline"
}

log_of() { # worker; of its last process
    # shellcheck disable=SC2012
    ls -v "$folder/workers/$1".[0-9]*.log | tail -n 1
}

in_timeline() { # pattern, [at least so many times]
    [[ $(grep -cE "^[0-9.]+ $1" "$folder/timeline") -ge ${2:-1} ]]
}

# Whether these processes are all gone; one that nobody has waited for yet has ended too.
are_gone() { # pid…
    local pid stat
    for pid in "$@"; do
        { read -r stat <"/proc/$pid/stat"; } 2>/dev/null || continue
        [[ ${stat##*) } == Z* ]] || return 1
    done
}
