/* Fairness: the ring of a fair level with a total. Who waits for a turn, and who gives turns.
 *
 * Modelled: join_known_ring, announce_unless_blocked, block_ring, unblock_rings,
 * clear_ring_announcement, take_wait_of, keep_in_ring (extension/limit/fair_ring), begin_turns,
 * next_turn, answer_turn, leave_ring, end_turns, blocks_turn (extension/limit/fair_turn), admit,
 * report_opened (extension/limit/admission), promote_marked, promote_ring (extension/queue),
 * note_wait_taken, wake_after_commit, wake_after_abort, publish_freed_levels (extension/wake).
 *
 * The promises:
 * - The level never has more than TOTAL jobs with a place: the assertion in `become_visible`.
 * - Where no process has anything to do, no due parked job stands beside a free place: the assertion
 *   in `watch`.
 *
 * Left out, and why that is sound:
 * - Which member is next. A walk visits the waiting members in any order here, so each order of the
 *   code is among the orders of the model. That a member gets its share is for pgTAP.
 * - Which level has which ring: the level has its ring from the start, and stays fair.
 * - Swaps in a full level: a swap frees no place.
 * - The queues that a sweep registers for a full level: level.pml. Here the end of a job marks these
 *   queues.
 * - Waiters. A claimer runs whenever a mark is set or a commit or an abort has woken a waiter, and again
 *   where its last claim was told of more work or of a busy lock.
 * - A transaction sets all its marks in one step at its end. A promotion takes the level's lock and the
 *   snapshot in one step, because it does nothing in between.
 *
 * Memory: `blocked_group` and `blocked_frees` are written by plain stores into a store buffer. Stores
 * of one process reach memory in any order, as some machines allow.
 */
#ifndef CLAIMERS
#define CLAIMERS 2
#endif
#ifndef QUEUES
#define QUEUES 2
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef TOTAL
#define TOTAL 1
#endif
#ifndef ROOM
#define ROOM 1
#endif
#ifndef ENDS
#define ENDS FAULTS
#endif
#define MARKS_AT_ONCE 2
#define NONE 255

#define BIT(b) (1 << (b))
#define HAS(set, b) (((set) >> (b)) & 1)
/* The mark of the queue of an ended job, which has no job left. */
#define MARK_OF_END QUEUES

/* What is committed: the queues with a job that waits, and the jobs with a place. */
byte parked;
byte used;
/* The advisory locks of the level and of the ring: the claimer that holds the lock, plus one. */
byte level_lock, ring_lock;

/* Shared memory: queue marks, the level's group and the ring. */
byte marks;
byte registered;
byte frees;
byte waits;
bool announced;
bool blocked;
byte blocked_frees;
/* The store buffers. */
byte buffered_blocked[CLAIMERS] = NONE;
byte buffered_frees[CLAIMERS] = NONE;

byte ends;
/* Processes that died, and transactions that were undone. */
byte faults;
bool must_sweep;
/* A commit or an abort has woken a waiter, which has not claimed since. */
bool woken;

inline fence() {
  if
  :: buffered_blocked[me] != NONE -> blocked = buffered_blocked[me]; buffered_blocked[me] = NONE
  :: else
  fi;
  if
  :: buffered_frees[me] != NONE -> blocked_frees = buffered_frees[me]; buffered_frees[me] = NONE
  :: else
  fi
}

#define IS_BLOCKED (buffered_blocked[me] != NONE -> buffered_blocked[me] : blocked)
#define BLOCKED_FREES (buffered_frees[me] != NONE -> buffered_frees[me] : blocked_frees)

/* Stores reach memory at any time. */
proctype memory(byte me) {
end_idle:
  do
  :: d_step {
       buffered_blocked[me] != NONE ->
       blocked = buffered_blocked[me];
       buffered_blocked[me] = NONE
     }
  :: d_step {
       buffered_frees[me] != NONE ->
       blocked_frees = buffered_frees[me];
       buffered_frees[me] = NONE
     }
  od
}

inline release_locks() {
  fence();
  if
  :: level_lock == me + 1 -> level_lock = 0
  :: else
  fi;
  if
  :: ring_lock == me + 1 -> ring_lock = 0
  :: else
  fi
}

inline forget() {
  taken = 0; gave = 0; looks = 0; room = ROOM; at = 0; is_known = false;
  known_taken = 0; known_frees = 0; took_ring = false; is_full = false; is_behind = false;
  seen_frees = 0; seen_blocked_frees = 0
}

inline become_visible() {
  for (i : 0 .. QUEUES - 1) {
    used = used + HAS(gave, i)
  }
  i = 0;
  assert(used <= TOTAL);
  parked = parked & ~gave
}

/* find_taken() under a new snapshot. */
inline count_level() {
  if
  :: !is_known || (known_taken >= TOTAL && known_frees != seen_frees) ->
    is_known = true;
    known_frees = seen_frees;
    known_taken = used;
    for (i : 0 .. QUEUES - 1) {
      known_taken = known_taken + HAS(gave, i)
    }
    i = 0
  :: else
  fi;
  seen_frees = 0
}

inline announce() {
  d_step { fence(); announced = true }
}

proctype claimer(byte me) {
  byte taken, gave, looks, at, i;
  byte room = ROOM;
  bool is_known, took_ring, is_full, is_behind, again;
  byte known_taken, known_frees, seen_frees, seen_blocked_frees;

end_idle:
  atomic { marks != 0 || woken || again -> woken = false; again = false };

  /* unblock_rings() */
#ifndef NO_UNBLOCKING
  if
  :: IS_BLOCKED ->
    seen_frees = frees;
    seen_blocked_frees = BLOCKED_FREES;
    if
    :: seen_frees != seen_blocked_frees ->
      buffered_blocked[me] = 0;
      announce()
    :: else
    fi;
    seen_frees = 0;
    seen_blocked_frees = 0
  :: else
  fi;
#endif

next_mark:
  atomic {
    if
    :: looks == MARKS_AT_ONCE || marks == 0 -> goto take_turns
    :: looks < MARKS_AT_ONCE && HAS(marks, 0) -> at = 0
    :: looks < MARKS_AT_ONCE && HAS(marks, 1) -> at = 1
    :: looks < MARKS_AT_ONCE && HAS(marks, 2) -> at = 2
#if QUEUES > 2
    :: looks < MARKS_AT_ONCE && HAS(marks, 3) -> at = 3
#endif
    fi;
    fence();
    looks++;
    marks = marks & ~BIT(at);
    taken = taken | BIT(at);
    if
    :: at == MARK_OF_END -> at = 0; goto next_mark
    :: else
    fi
  };
  /* join_known_ring() */
#ifdef ANNOUNCE_BEFORE_JOIN
  if
  :: !IS_BLOCKED -> announce()
  :: else
  fi;
  d_step { fence(); waits = waits | BIT(at); at = 0 };
#else
  d_step { fence(); waits = waits | BIT(at); at = 0 };
  if
  :: !IS_BLOCKED -> announce()
  :: else
  fi;
#endif
  goto next_mark;

take_turns:
  if
  :: atomic { faults < FAULTS -> faults++ } -> goto die
  :: !announced -> goto end_transaction
  :: announced
  fi;
  atomic {
    if
    :: ring_lock == 0 -> fence(); ring_lock = me + 1
    :: ring_lock != 0 -> again = true; goto end_transaction
    fi
  };
#ifndef NO_CHECK_IN_LOCK
  if
  :: !announced -> goto leave_ring
  :: else
  fi;
#endif
  buffered_blocked[me] = 0;

next_turn:
  atomic {
    if
    :: room == 0 || is_full || is_behind || waits == 0 -> goto end_turns
    :: room > 0 && !is_full && !is_behind && HAS(waits, 0) -> at = 0
    :: room > 0 && !is_full && !is_behind && HAS(waits, 1) -> at = 1
#if QUEUES > 2
    :: room > 0 && !is_full && !is_behind && HAS(waits, 2) -> at = 2
#endif
    fi;
    fence();
    waits = waits & ~BIT(at);
    taken = taken | BIT(at);
    took_ring = true;
    seen_frees = frees
  };
  atomic {
    if
    :: level_lock == 0 || level_lock == me + 1 ->
      fence();
      level_lock = me + 1;
      count_level()
    :: level_lock != 0 && level_lock != me + 1 -> seen_frees = 0; is_behind = true; again = true
    fi
  };
  if
  :: atomic { faults < FAULTS -> faults++ } -> goto die
  :: is_behind ->
#ifndef BUSY_FORGETS
    d_step { fence(); waits = waits | BIT(at) }
#endif
  :: !is_behind && (!HAS(parked, at) || HAS(gave, at))
  :: !is_behind && HAS(parked, at) && !HAS(gave, at) && known_taken < TOTAL -> d_step {
       gave = gave | BIT(at);
       known_taken++;
       room--
     }
  :: !is_behind && HAS(parked, at) && !HAS(gave, at) && known_taken >= TOTAL ->
    is_full = true;
#ifndef FULL_FORGETS
    d_step { fence(); waits = waits | BIT(at) }
#endif
  fi;
  at = 0;
  goto next_turn;

end_turns:
  if
  :: is_full ->
    /* block_ring() */
#ifdef CLEAR_AFTER_BLOCKING
    buffered_frees[me] = known_frees;
    buffered_blocked[me] = 1;
    d_step { fence(); announced = false };
#else
    d_step { fence(); announced = false };
    buffered_frees[me] = known_frees;
    buffered_blocked[me] = 1;
#ifndef NO_BARRIER
    d_step { fence() };
#endif
#endif
#ifndef NO_FREES_CHECK
    if
    :: frees != known_frees ->
      buffered_blocked[me] = 0;
      announce();
      again = true
    :: else
    fi
#endif
  :: !is_full && waits != 0
  :: !is_full && waits == 0 ->
    d_step { fence(); announced = false };
#ifndef NO_SECOND_READ
    if
    :: waits != 0 ->
      announce();
#ifndef NEWS_IS_NO_WORK
      again = true
#endif
    :: else
    fi
#endif
  fi;

leave_ring:
  skip;
  d_step { fence(); ring_lock = 0 };
  again = again || (room == 0 && announced);

end_transaction:
  is_full = false;
  is_behind = false;
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
  d_step { release_locks(); forget() };
  goto end_idle;

abort:
  skip;
  d_step {
    fence();
#ifndef ABORT_FORGETS_MARKS
    marks = marks | taken;
#endif
#ifndef ABORT_FORGETS_RING
    announced = announced || took_ring;
#endif
    woken = true
  };
  d_step { release_locks(); forget() };
  goto end_idle;

die:
  skip;
  d_step { must_sweep = true; release_locks(); forget(); again = false };
  goto end_idle
}

/* --- ends of jobs, and sweeps ----------------------------------------------------------------- */

proctype ender() {
end_idle:
  do
  :: atomic { ends < ENDS && used > 0 -> used--; ends++ };
     if
     :: d_step { faults < FAULTS -> faults++; must_sweep = true }
     :: true ->
       marks = marks | BIT(MARK_OF_END);
#ifndef COMMIT_COUNTS_NOTHING
       frees++;
#endif
       d_step { marks = marks | registered; registered = 0 };
       woken = true
     fi
  od
}

proctype sweep() {
  byte seen_parked, seen_used, seen_frees;
end_idle:
  do
  :: must_sweep ->
    must_sweep = false;
    seen_frees = frees;
    d_step { seen_parked = parked; seen_used = used };
#ifndef NO_RECONCILING
    if
    :: seen_used < TOTAL -> marks = marks | seen_parked
    :: else ->
      registered = registered | seen_parked;
      if
      :: frees != seen_frees -> marks = marks | seen_parked
      :: else
      fi
    fi;
#endif
    woken = true;
    d_step { seen_parked = 0; seen_used = 0; seen_frees = 0 }
  od
}

proctype watch() {
end_idle:
  timeout;
  assert(parked == 0 || used >= TOTAL)
}

init {
  byte i;
  atomic {
    used = TOTAL;
    parked = BIT(QUEUES) - 1;
    /* The first queue is marked; the others have joined the ring. */
    marks = BIT(0);
    waits = parked & ~BIT(0);
    announced = true;
    for (i : 0 .. CLAIMERS - 1) {
      run claimer(i);
      run memory(i)
    }
    run ender();
    run sweep();
    run watch()
  }
}
