/* Queue marks, promotions and the places of a queue.
 *
 * Modelled: take_promotion_mark, return_promotion_mark, note_queue, note_promoted, narrow,
 * wake_after_commit, wake_after_abort, wake_for_undone_savepoint (extension/wake), next_mark,
 * next_name, promote_queue, open_places, keep_queue_mark, reconcile_queues (extension/queue), admit,
 * lock_and_read, report_opened (extension/limit), on_commit, on_abort, on_savepoint_abort
 * (extension/transaction_end).
 *
 * The promises:
 * - A queue never has more than LIMIT jobs with a place: the assertion in `become_visible`.
 * - Where no process has anything to do, no due parked job stands beside a free place of its queue:
 *   the assertion in `watch`. So under weak fairness each such job is opened.
 *
 * Left out, and why that is sound:
 * - Jobs are numbers. Which job of a queue a promotion opens (order, swaps, strict queues) changes
 *   neither the number of places nor the marks.
 * - An open, a placed and a running job are the same: each has a place until the end of an attempt.
 * - Waiters. A claimer runs whenever a mark is set; extension/wake decides whom a commit wakes.
 * - Levels, rates and rings: level.pml, credit.pml and ring.pml.
 * - A transaction sets all its marks in one step at its end. Each mark alone matters, and stands in
 *   the same order to the commit as in the code.
 * - A promotion takes the lock and the snapshot in one step, because it does nothing in between.
 * - The marks are read and written by atomic operations with a full barrier alone, so a store buffer
 *   would always be empty.
 *
 * A process that dies leaves the marks as the marks stood. Its locks vanish and its transaction is
 * undone, or stands if the commit had become visible. A later sweep reconciles.
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
#ifndef BUCKETS
#define BUCKETS QUEUES
#endif
#ifndef LIMIT
#define LIMIT 1
#endif
#ifndef ROOM
#define ROOM 1
#endif
#ifndef ENDS
#define ENDS FAULTS
#endif
#define MARKS_AT_ONCE 2
#define NONE 255

#define BUCKET(q) ((q) % BUCKETS)
#define BIT(b) (1 << (b))
#define HAS(set, b) (((set) >> (b)) & 1)
#define ALL_MARKS (BIT(BUCKETS) - 1)

#ifdef ONE_TOO_MANY
#define PLACES (LIMIT + 1)
#else
#define PLACES LIMIT
#endif

/* What is committed: jobs that wait, and jobs with a place. */
byte parked[QUEUES];
byte used[QUEUES];
/* Row locks of running jobs that an open transaction ends. */
byte ending[QUEUES];
/* The advisory lock of each queue: the claimer that holds the lock, plus one. */
byte queue_lock[QUEUES];
/* Shared memory: a bit for each queue bucket. */
byte marks;

byte ends;
/* Processes that died, and transactions and savepoints that were undone. */
byte faults;
bool must_sweep;

inline set_marks(set) {
#ifdef PLAIN_MARKS
  seen = marks;
  marks = seen | (set);
  seen = 0;
#else
  marks = marks | (set);
#endif
}

/* --- a transaction of a worker: it may end a job, and promotes -------------------------------- */

inline release_locks() {
  for (i : 0 .. QUEUES - 1) {
    if
    :: queue_lock[i] == me + 1 -> queue_lock[i] = 0
    :: else
    fi
  }
  i = 0
}

inline forget() {
  taken = 0; returned = 0; own = 0; unpromoted = 0; gave = 0; noted = 0; looks = 0;
  room = ROOM; ended = NONE; at = 0; bucket = 0; free = 0; waiting = 0
}

inline become_visible() {
  for (i : 0 .. QUEUES - 1) {
    used[i] = used[i] + HAS(gave, i) - (ended == i);
    parked[i] = parked[i] - HAS(gave, i);
    ending[i] = ending[i] - (ended == i);
    assert(used[i] <= LIMIT)
  }
  i = 0
}

inline become_undone() {
  if
  :: ended != NONE -> ending[ended] = ending[ended] - 1
  :: else
  fi
}

/* The snapshot of a promotion, with the changes of the transaction itself. */
inline read_places() {
  free = PLACES - (used[at] - (ended == at) + HAS(gave, at));
  waiting = parked[at] - HAS(gave, at)
}

inline is_promoted() {
  if
  :: unpromoted != NONE -> unpromoted = unpromoted & ~BIT(at)
  :: else
  fi
}

inline end_of(queue) {
  ends++;
  ended = queue;
  ending[ended] = ending[ended] + 1;
  noted = BIT(BUCKET(ended));
  own = noted;
  unpromoted = BIT(ended)
}

inline take(mark) {
  bucket = mark;
#ifndef CLEAR_AFTER_PROMOTION
  marks = marks & ~BIT(bucket);
#endif
  taken = taken | BIT(bucket);
  looks++;
  at = bucket
}

/* narrow(): the marks of the queues that the transaction has not promoted. */
inline narrow() {
  if
  :: unpromoted != NONE ->
    noted = 0;
    for (i : 0 .. QUEUES - 1) {
      noted = noted | (HAS(unpromoted, i) << BUCKET(i))
    }
    i = 0
  :: else
  fi
}

proctype claimer(byte me) {
  byte taken, returned, own, unpromoted, gave, noted, looks;
  byte room = ROOM;
  byte ended = NONE;
  byte at, bucket, i, waiting;
  short free;
#ifdef PLAIN_MARKS
  byte seen;
#endif

end_idle:
  if
  :: marks != 0
  :: atomic { ends < ENDS && used[0] > ending[0] -> end_of(0) }
  :: atomic { ends < ENDS && used[1] > ending[1] -> end_of(1) }
#if QUEUES > 2
  :: atomic { ends < ENDS && used[2] > ending[2] -> end_of(2) }
#endif
  fi;

next_mark:
  atomic {
    if
    :: room == 0 || looks == MARKS_AT_ONCE -> goto end_transaction
    :: room > 0 && looks < MARKS_AT_ONCE && own != 0 ->
      bucket = 0;
      do
      :: HAS(own, bucket) -> break
      :: else -> bucket++
      od;
      own = own & ~BIT(bucket);
      looks++;
      at = bucket
    :: room > 0 && looks < MARKS_AT_ONCE && own == 0 && HAS(marks, 0) -> take(0)
#if BUCKETS > 1
    :: room > 0 && looks < MARKS_AT_ONCE && own == 0 && HAS(marks, 1) -> take(1)
#endif
#if BUCKETS > 2
    :: room > 0 && looks < MARKS_AT_ONCE && own == 0 && HAS(marks, 2) -> take(2)
#endif
    :: room > 0 && looks < MARKS_AT_ONCE && own == 0 && marks == 0 -> goto end_transaction
    fi
  };

next_queue:
  if
  :: room == 0 -> returned = returned | BIT(bucket); goto done_with_mark
  :: else
  fi;
#ifdef SNAPSHOT_BEFORE_LOCK
  d_step { read_places() };
#endif
  atomic {
    if
#ifdef NO_QUEUE_LOCK
    :: skip
#else
    :: queue_lock[at] == 0 || queue_lock[at] == me + 1 -> queue_lock[at] = me + 1
    :: queue_lock[at] != 0 && queue_lock[at] != me + 1 ->
#ifndef BUSY_FORGETS
      returned = returned | BIT(bucket);
#endif
      goto after_queue
#endif
    fi;
#ifndef SNAPSHOT_BEFORE_LOCK
    read_places()
#endif
  };
  if
  :: atomic { faults < FAULTS -> faults++ } -> goto die
  :: free > 0 && waiting > 0 -> d_step {
       gave = gave | BIT(at);
       room--;
       is_promoted();
#ifndef ROOM_FORGETS
       if
       :: free > 1 && waiting > 1 -> returned = returned | BIT(bucket)
       :: else
       fi;
#endif
       free = 0; waiting = 0
     };
#ifdef UNLOCK_AFTER_OPENING
     queue_lock[at] = 0
#endif
  :: !(free > 0 && waiting > 0) ->
     atomic {
#ifdef IN_VAIN_IS_PROMOTED
       is_promoted();
#endif
       free = 0; waiting = 0;
       if
       :: !HAS(gave, at) && queue_lock[at] == me + 1 -> queue_lock[at] = 0
       :: else
       fi
     }
  fi;

after_queue:
#ifndef ONE_QUEUE_OF_BUCKET
  if
  :: at + BUCKETS < QUEUES -> at = at + BUCKETS; goto next_queue
  :: else
  fi;
#endif
#ifdef CLEAR_AFTER_PROMOTION
  marks = marks & ~BIT(bucket);
#endif

done_with_mark:
  at = 0;
  bucket = 0;
  goto next_mark;

end_transaction:
  if
  :: goto commit
  :: atomic { faults < FAULTS && (taken | gave) != 0 -> faults++ } -> goto undo_savepoint
  :: atomic { faults < FAULTS && (taken | gave) != 0 -> faults++ } -> goto abort
  :: atomic { faults < FAULTS -> faults++ } -> goto die
  fi;

  /* The savepoint began after the end of the job, and before the first mark was taken. */
undo_savepoint:
  skip;
  d_step {
    gave = 0; room = ROOM; looks = 0;
    release_locks();
#ifndef UNDONE_STAYS_PROMOTED
    unpromoted = NONE;
#endif
#ifndef SAVEPOINT_FORGETS_MARKS
    own = own | noted | taken;
    returned = returned | taken
#endif
  };
  if
  :: goto next_mark
  :: goto end_transaction
  fi;

commit:
  skip;
#ifdef MARK_BEFORE_VISIBLE
  d_step { narrow() };
  set_marks(noted);
#endif
  d_step { become_visible(); narrow() };
  if
  :: atomic { faults < FAULTS -> faults++; ended = NONE } -> goto die
  :: true
  fi;
#ifdef MARK_BEFORE_VISIBLE
  set_marks(returned);
#else
  set_marks(noted | returned);
#endif
  d_step { release_locks(); forget() };
  goto end_idle;

abort:
  skip;
  d_step { become_undone() };
#ifdef ABORT_FORGETS_MARKS
  set_marks(returned);
#else
  set_marks(taken | returned);
#endif
  d_step { release_locks(); forget() };
  goto end_idle;

die:
  skip;
  d_step {
    must_sweep = true;
    become_undone();
    release_locks();
    forget()
  };
  goto end_idle
}

/* --- transactions of producers, and sweeps ---------------------------------------------------- */

/* Adds a second job to a queue. */
proctype producer() {
#ifdef PLAIN_MARKS
  byte seen;
#endif
#ifdef MARK_BEFORE_VISIBLE
  set_marks(BIT(BUCKET(0)));
#endif
  parked[0] = parked[0] + 1;
  if
  :: d_step { faults < FAULTS -> faults++; must_sweep = true }
  :: true ->
#ifndef MARK_BEFORE_VISIBLE
     set_marks(BIT(BUCKET(0)))
#endif
  fi
}

/* A sweep judges all queues under the snapshot of one scan, and marks afterwards. */
proctype sweep() {
  byte wanted, i;
#ifdef PLAIN_MARKS
  byte seen;
#endif
end_idle:
  do
  :: must_sweep ->
    must_sweep = false;
    d_step {
      wanted = 0;
      for (i : 0 .. QUEUES - 1) {
        wanted = wanted | ((parked[i] > 0 && used[i] < LIMIT) << BUCKET(i))
      }
      i = 0
    };
#ifndef NO_RECONCILING
    set_marks(wanted);
#endif
    wanted = 0
  od
}

proctype watch() {
  byte i;
end_idle:
  timeout;
  d_step {
    for (i : 0 .. QUEUES - 1) {
      assert(parked[i] == 0 || used[i] >= LIMIT)
    }
  }
}

init {
  byte i;
  atomic {
    for (i : 0 .. QUEUES - 1) {
      parked[i] = 1
    }
    marks = ALL_MARKS;
    for (i : 0 .. CLAIMERS - 1) {
      run claimer(i)
    }
    run producer();
    run sweep();
    run watch()
  }
}
