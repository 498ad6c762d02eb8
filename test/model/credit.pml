/* Rates: the tokens of a level, and the credit that promotions take while they share the level.
 *
 * Modelled: take_credit, return_credit, take_all_credit, note_credit, publish_credit, forget_credit
 * (extension/limit/rate_credit), read_rate, charge, store_known, store_reading, charge_claim,
 * forget_level (extension/limit/rate), try_lock_levels, try_lock_limited_levels, take_credits,
 * find_reading, count_opened, unlock_levels (extension/limit/levels), admit, lock_and_read,
 * report_opened (extension/limit/admission), on_commit, on_abort, on_savepoint_abort
 * (extension/transaction_end).
 *
 * The promises:
 * - No more jobs are open and claimed together than the level has had tokens: the assertion in
 *   `become_visible`.
 * - Where no process has anything to do, no due parked job stands beside a token, unless a fault has
 *   cost the token: the assertion in `watch`.
 *
 * Left out, and why that is sound:
 * - Time. A token that comes is a token more for every reading after it, and only a reading looks at
 *   the clock. So the level has BURST tokens from the start.
 * - Places of queues, totals, rings, and who waits for the level: marks.pml, level.pml, ring.pml.
 * - A swap and a strict queue open and park the same number of jobs, or one.
 * - Which share of the unused tokens a reading sets aside: any, here.
 * - Settings. The change of settings drops the credit under the level's lock, as a reading does.
 * - Other levels of the same entry of shared memory. Such a level costs the credit, as a fault does.
 * - A promotion takes the lock and the snapshot in one step, because it does nothing in between.
 * - A savepoint undoes the whole transaction, or nothing.
 * - The entry of the credit is read and written under a spinlock alone, so a store buffer would always
 *   be empty. A reader of the credit takes the row's lock of a later snapshot.
 *
 * A process that dies leaves the credit as the credit stood. Its locks vanish and its transaction is
 * undone, or stands if the commit had become visible. A later sweep marks the queues.
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
#ifndef BURST
#define BURST 3
#endif
#ifndef JOBS
#define JOBS 2
#endif
/* How many jobs a promotion opens at most, and the tokens that it takes from the credit. */
#ifndef CONCURRENCY
#define CONCURRENCY 1
#endif
#ifndef CLAIMS
#define CLAIMS 1
#endif
/* Calls that promote in one transaction. */
#ifndef CALLS
#define CALLS 1
#endif

#define BIT(b) (1 << (b))
#define HAS(set, b) (((set) >> (b)) & 1)
#define ALL_MARKS (BIT(QUEUES) - 1)
#define LEAST(a, b) ((a) < (b) -> (a) : (b))
#define NO_LESS_THAN_0(a) ((a) > 0 -> (a) : 0)

/* What is committed: jobs that wait, open jobs, claimed jobs, and the row of the level. */
byte parked[QUEUES];
byte open;
byte claimed;
byte row_spent;
byte row_open;
/* Row locks of open jobs that an open transaction claims. */
byte locked;
/* Advisory locks: of each queue, of the level alone, and of the processes that share the level. */
byte queue_lock[QUEUES];
byte level_lock;
byte level_sharers;
/* Shared memory: queue marks, and the entry of the level's credit. */
byte marks;
bool has_credit;
byte credit;

byte faults;
/* Tokens that faults have cost. */
byte lost;
bool must_sweep;

inline forget() {
  taken = 0; returned = 0; visited = 0; at = 0; took = 0; opens = 0; opened = 0; all_credit = 0;
  from_credit = 0;
  mine = 0; others = 0; uncharged = 0; is_read = false; is_changed = false; is_stored = false;
  spent = 0; reading = 0; stored_spent = 0; stored_open = 0;
  for (i : 0 .. QUEUES - 1) {
    gave[i] = 0
  }
#if CALLS > 1
  calls = 0;
#endif
  i = 0
}

inline release_locks() {
  for (i : 0 .. QUEUES - 1) {
    if
    :: queue_lock[i] == me + 1 -> queue_lock[i] = 0
    :: else
    fi
  }
  i = 0;
  if
  :: level_lock == me + 1 -> level_lock = 0
  :: else
  fi;
  level_sharers = level_sharers & ~BIT(me);
  locked = locked - others
}

#define SPENT_IN_VIEW (is_stored -> stored_spent : row_spent)
#define OPEN_IN_VIEW (is_stored -> stored_open : row_open)
/* The open jobs in the view of the transaction. */
#define OPEN_JOBS (open + opened - mine - others)

/* find_reading(), read_rate(): charges the jobs that were claimed since the row was stored. */
inline find_reading() {
  if
  :: !is_read ->
    is_read = true;
    all_credit = all_credit + (has_credit -> credit : 0);
    took = (has_credit -> credit : 0) + noted;
#ifndef READING_LEAVES_CREDIT
    has_credit = false;
    credit = 0;
#endif
#ifndef READING_LEAVES_NOTED
    noted = 0;
#endif
    reading = OPEN_JOBS;
    spent = SPENT_IN_VIEW + NO_LESS_THAN_0(OPEN_IN_VIEW - reading - took);
    is_changed = took > 0 || spent != SPENT_IN_VIEW;
    took = 0
  :: else
  fi
}

/* store_known(): `spare` tokens are set aside. */
inline store_known(spare) {
  spent = spent + uncharged;
  reading = reading - uncharged;
  uncharged = 0;
  is_changed = false;
  is_stored = true;
  /* note_credit(0) leaves the noted credit of an earlier store. */
  noted = (spare > 0 -> spare : noted);
  stored_spent = spent;
#ifdef ROW_FORGETS_CREDIT
  stored_open = reading
#else
  stored_open = reading + spare
#endif
}

#define UNUSED (BURST - spent - reading)

/* store_readings() */
inline store_reading() {
  if
  :: atomic { is_read && (is_changed || uncharged > 0) -> store_known(0) }
  :: atomic { is_read && (is_changed || uncharged > 0) && UNUSED > 0 -> store_known(UNUSED) }
  :: !is_read || !(is_changed || uncharged > 0)
  fi;
  is_read = false
}

/* publish_credit() */
inline publish_credit() {
  if
  :: noted > 0 -> has_credit = true; credit = noted; noted = 0
  :: else
  fi
}

inline become_visible() {
  for (i : 0 .. QUEUES - 1) {
    parked[i] = parked[i] - gave[i]
  }
  i = 0;
  open = open + opened - mine - others;
  claimed = claimed + mine + others;
  locked = locked - others;
  others = 0;
  if
  :: is_stored -> row_spent = stored_spent; row_open = stored_open
  :: else
  fi;
  assert(claimed + open <= BURST)
}

proctype claimer(byte me) {
  byte taken, returned, visited, at, i;
#if CALLS > 1
  byte calls;
#endif
  byte gave[QUEUES];
  /* Tokens taken for the promotion, jobs that the promotion opens, jobs that the transaction has
   * opened, credit that its readings took back, credit that its promotions used. */
  byte took, opens, opened, all_credit, from_credit;
  /* Claimed jobs: of the transaction's own, of others, and those that the reading does not know. */
  byte mine, others, uncharged;
  /* The level as known to the call, and the row as stored by the transaction. */
  bool is_read, is_changed, is_stored;
  byte spent, reading, stored_spent, stored_open;
  byte noted;
#ifdef TAKE_IN_TWO_STEPS
  byte seen;
#endif

end_idle:
  (marks != 0 || open > locked);

next_mark:
  atomic {
    if
    :: (marks & ~visited) == 0 -> goto claim
    :: HAS(marks & ~visited, 0) -> at = 0
    :: HAS(marks & ~visited, 1) -> at = 1
#if QUEUES > 2
    :: HAS(marks & ~visited, 2) -> at = 2
#endif
    fi;
    marks = marks & ~BIT(at);
    visited = visited | BIT(at);
    taken = taken | BIT(at)
  };

  /* lock_and_read() */
  atomic {
    if
    :: level_lock == 0 || level_lock == me + 1 -> level_sharers = level_sharers | BIT(me)
    :: level_lock != 0 && level_lock != me + 1 -> goto busy
    fi;
    if
    :: queue_lock[at] == 0 || queue_lock[at] == me + 1 -> queue_lock[at] = me + 1
    :: queue_lock[at] != 0 && queue_lock[at] != me + 1 -> goto busy
    fi
  };
  /* take_credit() */
#ifdef TAKE_IN_TWO_STEPS
  seen = (has_credit -> credit : 0);
  if
  :: seen < CONCURRENCY -> seen = 0; goto hold_level
  :: seen >= CONCURRENCY ->
     d_step {
       credit = seen - CONCURRENCY;
       from_credit = from_credit + CONCURRENCY;
       took = CONCURRENCY;
       seen = 0
     }
  fi;
#else
  atomic {
    if
    :: has_credit && credit >= CONCURRENCY ->
      credit = credit - CONCURRENCY;
      from_credit = from_credit + CONCURRENCY;
      took = CONCURRENCY
    :: !has_credit || credit < CONCURRENCY -> goto hold_level
    fi
  };
#endif
  if
  :: atomic { faults < FAULTS -> faults++ } -> goto die
  :: true
  fi;
  d_step {
    opens = LEAST(took, parked[at] - gave[at]);
    gave[at] = gave[at] + opens;
#ifdef UNLOCK_BEFORE_RETURN
    level_sharers = level_sharers & ~BIT(me);
#endif
    opened = opened + opens
  };
  /* return_credit() */
  d_step {
#ifdef RETURNS_ALL
    opens = 0;
#endif
    if
    :: has_credit -> credit = credit + took - opens; from_credit = from_credit - took + opens
    :: else
    fi;
    took = 0
  };
  goto report;

  /* try_lock_limited_levels() */
hold_level:
  atomic {
    level_sharers = level_sharers & ~BIT(me);
#ifdef SNAPSHOT_BEFORE_LOCK
    find_reading();
#endif
    if
#ifdef NO_EXCLUSIVE
    :: level_sharers = level_sharers | BIT(me)
#else
    :: (level_lock == 0 || level_lock == me + 1) && level_sharers == 0 -> level_lock = me + 1
    :: (level_lock != 0 && level_lock != me + 1) || level_sharers != 0 -> goto busy
#endif
    fi;
    find_reading();
    opens = LEAST(NO_LESS_THAN_0(UNUSED), parked[at] - gave[at]);
    opens = LEAST(opens, CONCURRENCY);
    gave[at] = gave[at] + opens;
    opened = opened + opens;
    reading = reading + opens;
    is_changed = is_changed || opens > 0
  };
  if
  :: atomic { faults < FAULTS -> faults++ } -> goto die
  :: true
  fi;
  goto report;

  /* report_opened(): unlock_levels() where the promotion opened nothing. */
report:
  atomic {
    /* The end of an opened job sets the queue mark. */
    if
    :: opens > 0 && parked[at] > gave[at] -> returned = returned | BIT(at)
    :: else
    fi;
    if
    :: opens == 0 && gave[at] == 0 -> queue_lock[at] = 0
    :: else
    fi;
    opens = 0;
    at = 0
  };
  goto next_mark;

busy:
#ifndef BUSY_FORGETS
  returned = returned | BIT(at);
#endif
  if
  :: queue_lock[at] == me + 1 && gave[at] == 0 -> queue_lock[at] = 0
  :: else
  fi;
  at = 0;
  goto next_mark;

claim:
  atomic {
    if
    :: mine + others < CLAIMS && opened > mine ->
      mine++;
      uncharged = uncharged + is_read
    :: mine + others < CLAIMS && open > locked ->
      others++;
      locked++;
      uncharged = uncharged + is_read
    :: true
    fi
  };
  store_reading();
#if CALLS > 1
  visited = 0;
  if
  :: atomic { calls < CALLS - 1 && marks != 0 -> calls++ } -> goto next_mark
  :: true
  fi;
#endif
#ifdef PUBLISH_BEFORE_COMMIT
  d_step { publish_credit() };
#endif
  if
  :: goto commit
  :: atomic { faults < FAULTS && taken != 0 -> faults++ } -> goto undo_savepoint
  :: atomic { faults < FAULTS && taken != 0 -> faults++ } -> goto abort
  :: atomic { faults < FAULTS -> faults++ } -> goto die
  fi;

undo_savepoint:
  skip;
  d_step {
    lost = lost + all_credit + from_credit;
    release_locks();
    forget();
    returned = ALL_MARKS;
#ifndef SAVEPOINT_KEEPS_NOTED
    noted = 0
#endif
  };
  goto commit;

commit:
  skip;
  d_step { become_visible() };
  if
  :: atomic { faults < FAULTS -> faults++; lost = lost + noted; from_credit = 0; all_credit = 0 };
     goto die
  :: true
  fi;
#ifdef PUBLISH_AFTER_UNLOCK
  d_step { release_locks() };
#endif
  d_step { publish_credit() };
  d_step { marks = marks | returned; release_locks(); forget() };
  goto end_idle;

abort:
  skip;
  d_step {
    lost = lost + all_credit + from_credit;
    marks = marks | taken | returned;
    release_locks();
    forget();
#ifndef ABORT_KEEPS_NOTED
    noted = 0
#endif
  };
  goto end_idle;

die:
  skip;
  d_step {
    lost = lost + all_credit + from_credit;
    must_sweep = true;
    noted = 0;
    release_locks();
    forget()
  };
  goto end_idle
}

proctype sweep() {
  byte i, wanted;
end_idle:
  do
  :: must_sweep ->
    must_sweep = false;
    d_step {
      wanted = 0;
      for (i : 0 .. QUEUES - 1) {
        wanted = wanted | ((parked[i] > 0) << i)
      }
      i = 0
    };
    marks = marks | wanted;
    wanted = 0
  od
}

proctype watch() {
  byte i, waiting;
end_idle:
  timeout;
  d_step {
    waiting = 0;
    for (i : 0 .. QUEUES - 1) {
      waiting = waiting + parked[i]
    }
    assert(waiting == 0 || claimed + open + lost >= BURST)
  }
}

init {
  byte i;
  atomic {
    for (i : 0 .. QUEUES - 1) {
      parked[i] = JOBS
    }
    marks = ALL_MARKS;
    for (i : 0 .. CLAIMERS - 1) {
      run claimer(i)
    }
    run sweep();
    run watch()
  }
}
