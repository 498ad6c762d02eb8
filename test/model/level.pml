/* Limits: who waits for a full level, and who lets the waiting queues go.
 *
 * Modelled: wait_for_level, take_wait, put_wait_back, end_wait_walk, waits_for_one_level
 * (extension/limit/levels), next_waiting_bucket, next_group, answer_freed, keep_queue_mark
 * (extension/queue/sources), admit, report_opened (extension/limit/admission), promote_marked,
 * reconcile_queues (extension/queue/promote), take_freed_level, return_freed_level, note_wait_taken,
 * wake_after_commit, wake_after_abort, publish_freed_levels (extension/wake).
 *
 * The promises:
 * - No level has more than TOTAL jobs with a place: the assertion in `become_visible`.
 * - Where no process has anything to do, no due parked job stands beside a free place of its level:
 *   the assertion in `watch`.
 *
 * Left out, and why that is sound:
 * - Where the walk over the waiting queues begins. A walk visits the queues in any order here, each
 *   once, so each order of the code is among the orders of the model.
 * - Rates and pauses: a token that comes, and the end of a pause, count in `frees` as a place.
 * - Rings: ring.pml.
 * - Waiters. A claimer runs whenever a mark or the group is announced, or a commit or an abort has
 *   woken a waiter.
 * - A transaction sets all its marks in one step at its end. A promotion takes the level's lock and
 *   the snapshot in one step, because it does nothing in between.
 *
 * - A sweep checks the queues once after a fault here, and again and again in the code. So the model is
 *   not searched with faults: a claim may judge by its own older count and use up the mark of a sweep.
 *
 * All levels share one group. Queue q is within level q % LEVELS, and has one job.
 *
 * Memory: `level` of the group is written by plain stores into a store buffer. All other words change
 * by atomic operations, which are barriers.
 */
#ifndef CLAIMERS
#define CLAIMERS 2
#endif
#ifndef QUEUES
#define QUEUES 2
#endif
#ifndef LEVELS
#define LEVELS 1
#endif
#ifndef FAULTS
#define FAULTS 0
#endif
#ifndef TOTAL
#define TOTAL 1
#endif
#ifndef PLACES
#define PLACES 1
#endif
#ifndef ENDS
#define ENDS 1
#endif
#define MARKS_AT_ONCE 2
#define NONE 255
#define MANY 99

#define BIT(b) (1 << (b))
#define HAS(set, b) (((set) >> (b)) & 1)
#define LEVEL_OF(q) ((q) % LEVELS)

/* What is committed: the queues with a job that waits, and the jobs with a place in each level. */
byte parked;
byte used[LEVELS];
/* The advisory locks of the levels: the claimer that holds the lock, plus one. */
byte level_lock[LEVELS];

/* Shared memory: queue marks, and the level group. `waiting` and `freed` are the bits of the group
 * in waiting_levels and freed_levels. */
byte marks;
byte waits;
byte frees;
byte only_level;
bool waiting;
bool freed;
byte buffered_level[CLAIMERS + 1] = NONE;

byte ends;
/* Processes that died, and transactions that were undone. */
byte faults;
bool must_sweep;
bool woken;

inline fence() {
  if
  :: buffered_level[me] != NONE -> only_level = buffered_level[me]; buffered_level[me] = NONE
  :: else
  fi
}

#define ONLY_LEVEL (buffered_level[me] != NONE -> buffered_level[me] : only_level)

/* Stores reach memory at any time. */
proctype memory(byte me) {
end_idle:
  do
  :: d_step {
       buffered_level[me] != NONE ->
       only_level = buffered_level[me];
       buffered_level[me] = NONE
     }
  od
}

/* wait_for_level() of the queue `at`; `known` is how often the group had counted freed places. */
inline wait_for_level(known) {
  d_step { fence(); waits = waits | BIT(at) };
  d_step {
    fence();
    if
    :: only_level == 0 -> only_level = LEVEL_OF(at) + 1
    :: only_level == LEVEL_OF(at) + 1
    :: else -> buffered_level[me] = MANY
    fi
  };
  d_step { fence(); waiting = true };
#ifndef NO_FREES_CHECK
  if
  :: frees != known -> d_step { fence(); marks = marks | BIT(at) }
  :: else
  fi
#endif
}

inline release_locks() {
  fence();
  for (i : 0 .. LEVELS - 1) {
    if
    :: level_lock[i] == me + 1 -> level_lock[i] = 0
    :: else
    fi
  }
  i = 0
}

inline forget() {
  taken = 0; gave = 0; taken_marks = 0; places = PLACES; at = 0; visited = 0; returned = 0;
  took_group = false; returns_group = false; in_group = false; met_lock = false; is_blocked = false;
  seen_frees = 0;
  for (i : 0 .. LEVELS - 1) {
    is_known[i] = false; known_taken[i] = 0; known_frees[i] = 0
  }
  i = 0
}

inline become_visible() {
  for (i : 0 .. QUEUES - 1) {
    used[LEVEL_OF(i)] = used[LEVEL_OF(i)] + HAS(gave, i)
  }
  for (i : 0 .. LEVELS - 1) {
    assert(used[i] <= TOTAL)
  }
  i = 0;
  parked = parked & ~gave
}

/* find_taken() of the level of the queue `at`, under a new snapshot. */
inline count_level() {
  if
  :: !is_known[LEVEL_OF(at)] ||
     (known_taken[LEVEL_OF(at)] >= TOTAL && known_frees[LEVEL_OF(at)] != seen_frees) ->
    is_known[LEVEL_OF(at)] = true;
    known_frees[LEVEL_OF(at)] = seen_frees;
    known_taken[LEVEL_OF(at)] = used[LEVEL_OF(at)];
    for (i : 0 .. QUEUES - 1) {
      if
      :: LEVEL_OF(i) == LEVEL_OF(at) ->
        known_taken[LEVEL_OF(at)] = known_taken[LEVEL_OF(at)] + HAS(gave, i)
      :: else
      fi
    }
    i = 0
  :: else
  fi;
  seen_frees = 0
}

#define CAN_START (HAS(parked, at) && !HAS(gave, at))
#define IS_FULL (known_taken[LEVEL_OF(at)] >= TOTAL)

proctype claimer(byte me) {
  byte taken, gave, taken_marks, at, i, visited, returned, seen_frees;
  byte places = PLACES;
  bool took_group, returns_group, in_group, met_lock, is_blocked, is_busy;
  bool is_known[LEVELS];
  byte known_taken[LEVELS], known_frees[LEVELS];

end_idle:
  atomic { marks != 0 || freed || woken -> woken = false };

  /* promote_freed_levels(): next_group() */
  if
  :: atomic { freed -> fence(); freed = false; took_group = true; in_group = true }
  :: !freed -> goto next_mark
  fi;

next_wait:
  /* next_waiting_bucket() */
  if
  :: met_lock -> returns_group = true; goto end_group
#ifdef ONE_LEVEL_ALWAYS
  :: !met_lock && is_blocked -> goto end_group
  :: !met_lock && !is_blocked
#else
  :: !met_lock && is_blocked && ONLY_LEVEL != MANY -> goto end_group
  :: !met_lock && !(is_blocked && ONLY_LEVEL != MANY)
#endif
  fi;
  atomic {
    if
    :: (waits & ~visited) == 0 -> goto end_walk
    :: HAS(waits & ~visited, 0) -> at = 0
    :: HAS(waits & ~visited, 1) -> at = 1
#if QUEUES > 2
    :: HAS(waits & ~visited, 2) -> at = 2
#endif
    fi;
    fence();
    waits = waits & ~BIT(at);
    visited = visited | BIT(at)
  };
  if
  :: places == 0 ->
    d_step { fence(); waits = waits | BIT(at) };
    returns_group = true;
    goto end_group
  :: places > 0 -> taken = taken | BIT(at); met_lock = false; is_blocked = false; goto promote
  fi;

end_walk:
  /* end_wait_walk() */
  if
  :: waits != 0 -> goto end_group
  :: waits == 0
  fi;
  d_step { fence(); waiting = false };
  buffered_level[me] = 0;
  d_step { fence() };
  if
  :: waits != 0 ->
    buffered_level[me] = MANY;
    d_step { fence(); waiting = true };
    d_step { fence(); freed = true }
  :: waits == 0
  fi;

end_group:
  skip;
  d_step { in_group = false; met_lock = false; is_blocked = false; at = 0 };

next_mark:
  atomic {
    if
    :: taken_marks == MARKS_AT_ONCE || marks == 0 || places == 0 -> goto end_transaction
    :: taken_marks < MARKS_AT_ONCE && places > 0 && HAS(marks, 0) -> at = 0
    :: taken_marks < MARKS_AT_ONCE && places > 0 && HAS(marks, 1) -> at = 1
#if QUEUES > 2
    :: taken_marks < MARKS_AT_ONCE && places > 0 && HAS(marks, 2) -> at = 2
#endif
    fi;
    fence();
    taken_marks++;
    marks = marks & ~BIT(at);
    taken = taken | BIT(at)
  };

promote:
#ifdef FREES_AFTER_SNAPSHOT
  skip;
#else
  seen_frees = frees;
#endif
  atomic {
    if
    :: level_lock[LEVEL_OF(at)] == 0 || level_lock[LEVEL_OF(at)] == me + 1 ->
      fence();
      level_lock[LEVEL_OF(at)] = me + 1;
      count_level();
      is_busy = false
    :: else -> seen_frees = 0; is_busy = true
    fi
  };
#ifdef FREES_AFTER_SNAPSHOT
  if
  :: !is_busy -> known_frees[LEVEL_OF(at)] = frees
  :: is_busy
  fi;
#endif
  if
  :: atomic { faults < FAULTS -> faults++ } -> goto die
  :: is_busy -> returned = returned | BIT(at); met_lock = true
  :: !is_busy && !CAN_START
  :: !is_busy && CAN_START && !IS_FULL -> d_step {
       gave = gave | BIT(at);
       known_taken[LEVEL_OF(at)] = known_taken[LEVEL_OF(at)] + 1;
       places--
     }
  :: !is_busy && CAN_START && IS_FULL ->
    is_blocked = true;
#ifndef FULL_FORGETS
    wait_for_level(known_frees[LEVEL_OF(at)])
#endif
  fi;
  is_busy = false;
  if
  :: in_group -> goto next_wait
  :: !in_group -> goto next_mark
  fi;

end_transaction:
  if
  :: goto commit
  :: atomic { faults < FAULTS && taken != 0 -> faults++ } -> goto abort
  :: atomic { faults < FAULTS -> faults++ } -> goto die
  fi;

commit:
  skip;
  d_step { fence(); become_visible() };
  if
  :: atomic { faults < FAULTS && gave != 0 -> faults++ } -> goto die
  :: true
  fi;
  d_step {
    marks = marks | returned;
    freed = freed || returns_group;
    woken = woken || taken != 0;
    release_locks();
    forget()
  };
  goto end_idle;

abort:
  skip;
  d_step {
    fence();
    marks = marks | taken | returned;
    freed = freed || took_group || returns_group;
    woken = true
  };
  d_step { release_locks(); forget() };
  goto end_idle;

die:
  skip;
  d_step { is_busy = false; must_sweep = true; release_locks(); forget() };
  goto end_idle
}

/* --- ends of jobs, and sweeps ----------------------------------------------------------------- */

proctype ender() {
  bool seen_waiting;
end_idle:
  do
  :: atomic {
       ends < ENDS ->
       if
       :: used[0] > 0 -> used[0] = used[0] - 1
#if LEVELS > 1
       :: used[1] > 0 -> used[1] = used[1] - 1
#endif
       fi;
       ends++
     };
     if
     :: d_step { faults < FAULTS -> faults++; must_sweep = true }
     :: true ->
#ifdef READ_BEFORE_COUNT
       seen_waiting = waiting;
       frees++;
#else
#ifndef COMMIT_COUNTS_NOTHING
       frees++;
#endif
       seen_waiting = waiting;
#endif
       if
       :: seen_waiting -> freed = true
       :: !seen_waiting
       fi;
       d_step { seen_waiting = false; woken = true }
     fi
  od
}

proctype sweep(byte me) {
  byte at, seen_parked, seen_frees;
  byte seen_used[LEVELS];
end_idle:
  do
  :: must_sweep ->
    must_sweep = false;
    seen_frees = frees;
    d_step {
      seen_parked = parked;
      for (at : 0 .. LEVELS - 1) {
        seen_used[at] = used[at]
      }
      at = 0
    };
    do
    :: at == QUEUES -> break
    :: at < QUEUES && !HAS(seen_parked, at) -> at++
    :: at < QUEUES && HAS(seen_parked, at) && seen_used[LEVEL_OF(at)] < TOTAL ->
      d_step { fence(); marks = marks | BIT(at) };
      at++
    :: at < QUEUES && HAS(seen_parked, at) && seen_used[LEVEL_OF(at)] >= TOTAL ->
      wait_for_level(seen_frees);
      at++
    od;
    woken = true;
    d_step { fence(); at = 0; seen_parked = 0; seen_frees = 0; seen_used[0] = 0 }
  od
}

proctype watch() {
  byte i;
end_idle:
  timeout;
  for (i : 0 .. QUEUES - 1) {
    assert(!HAS(parked, i) || used[LEVEL_OF(i)] >= TOTAL)
  }
}

init {
  byte i;
  atomic {
    for (i : 0 .. LEVELS - 1) {
      used[i] = TOTAL
    }
    parked = BIT(QUEUES) - 1;
    marks = parked;
    for (i : 0 .. CLAIMERS - 1) {
      run claimer(i);
      run memory(i)
    }
    run memory(CLAIMERS);
    run ender();
    run sweep(CLAIMERS);
    run watch()
  }
}
