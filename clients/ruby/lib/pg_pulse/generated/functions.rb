# frozen_string_literal: true

# Written by test/docs/generate; do not edit.
module PgPulse
  # Columns of the rows that functions give, with their types.
  ROWS = {
    job: {
      id: 'bigint', identifier: 'text', payload: 'json', queue_name: 'text', priority: 'smallint',
      run_at: 'timestamptz', state: 'pulse.job_state', attempts: 'smallint',
      max_attempts: 'smallint', crashes: 'smallint', job_key: 'text', flags: 'text[]',
      worker_id: 'bigint', token: 'bigint', claimed_at: 'timestamptz',
      last_activity_at: 'timestamptz', stage: 'text', progress: 'double precision',
      message: 'text', checkpoint: 'json', last_error: 'text', recovered: 'text', revision: 'int',
      created_at: 'timestamptz', updated_at: 'timestamptz', cancel_requested_at: 'timestamptz',
      cancel_reason: 'text', scheduled_for: 'timestamptz', start_by: 'timestamptz',
      starts_when: 'text', parents: 'json', traceparent: 'text', added_by: 'text',
      dead_letter_of: 'bigint'
    },
    operation: {
      id: 'bigint', action: 'text', filter: 'json', arguments: 'json', actor: 'text',
      role: 'text', state: 'text', last_id: 'bigint', checked_to: 'bigint', changed: 'bigint',
      skipped: 'bigint', undoes: 'bigint', skipped_because: 'json', created_at: 'timestamptz',
      updated_at: 'timestamptz', ended_at: 'timestamptz'
    },
    queue: {
      queue_name: 'text', concurrency: 'int', paused: 'bool', created_at: 'timestamptz',
      updated_at: 'timestamptz', total: 'int', is_level: 'bool', is_strict: 'bool',
      on_dead: 'text', fair: 'bool', weight: 'int', rate: 'int', per: 'interval', burst: 'int'
    },
    schedule: {
      name: 'text', identifier: 'text', cron: 'text', every: 'interval', time_zone: 'text',
      anchor: 'timestamptz', payload: 'json', queue_name: 'text', max_attempts: 'int',
      priority: 'int', flags: 'text[]', job_key: 'text', job_key_mode: 'text', missed: 'text',
      missed_for: 'interval', overlap: 'text', paused: 'bool', next_due: 'timestamptz',
      last_due: 'timestamptz', last_job_id: 'bigint', missed_count: 'bigint',
      overlapped_count: 'bigint', last_error: 'text', last_error_at: 'timestamptz',
      crontab_set: 'text', gone_at: 'timestamptz', paused_before: 'bool',
      created_at: 'timestamptz', updated_at: 'timestamptz', added_by: 'text',
      paused_at: 'timestamptz', paused_by: 'text'
    },
    task: {
      identifier: 'text', max_attempts: 'smallint', timeout: 'interval',
      stall_timeout: 'interval', backoff: 'text', backoff_base: 'interval',
      backoff_cap: 'interval', jitter: 'double precision', keep_completed: 'interval',
      max_crashes: 'int', on_unreachable: 'text', handler: 'text', created_at: 'timestamptz',
      updated_at: 'timestamptz', expires_after: 'interval', queue: 'text', dead_letter: 'text'
    }
  }.freeze

  # What each function takes and gives.
  FUNCTIONS = {
    add_job: {
      gives: :row,
      takes: {
        identifier: 'text', payload: 'json', queue_name: 'text', run_at: 'timestamptz',
        max_attempts: 'int', job_key: 'text', priority: 'int', flags: 'text[]',
        job_key_mode: 'text'
      },
      columns: ROWS[:job]
    },
    add_job_after: {
      gives: :row,
      takes: {
        after: 'bigint[]', identifier: 'text', payload: 'json', queue_name: 'text',
        run_at: 'timestamptz', max_attempts: 'int', job_key: 'text', priority: 'int',
        flags: 'text[]', job_key_mode: 'text', starts_when: 'text', start_by: 'timestamptz'
      },
      columns: ROWS[:job]
    },
    add_flow: {
      gives: :rows,
      takes: { jobs: 'json', flow_name: 'text' },
      columns: { key: 'text', id: 'bigint', flow_id: 'bigint' }
    },
    add_dependency: {
      gives: :nothing,
      takes: { job_id: 'bigint', after: 'bigint[]' }
    },
    add_jobs: {
      gives: :rows,
      takes: { specs: 'pulse.job_spec[]', job_key_preserve_run_at: 'bool' },
      columns: ROWS[:job]
    },
    add_job_once: {
      gives: :row,
      takes: {
        unique_for: 'interval', unique_key: 'text', identifier: 'text', payload: 'json',
        queue_name: 'text', run_at: 'timestamptz', max_attempts: 'int', priority: 'int',
        flags: 'text[]', states: 'text[]'
      },
      columns: { id: 'bigint', is_new: 'bool', state: 'text' }
    },
    forget_once: {
      gives: :value,
      takes: { identifier: 'text', unique_key: 'text' },
      type: 'bool'
    },
    add_job_for_request: {
      gives: :row,
      takes: {
        client: 'text', idempotency_key: 'text', request_hash: 'text', identifier: 'text',
        payload: 'json', queue_name: 'text', run_at: 'timestamptz', max_attempts: 'int',
        job_key: 'text', priority: 'int', flags: 'text[]', job_key_mode: 'text'
      },
      columns: {
        outcome: 'text', job_id: 'bigint', job_state: 'text', job_run_at: 'timestamptz'
      }
    },
    remove_job: {
      gives: :row,
      takes: { job_key: 'text' },
      columns: ROWS[:job]
    },
    wait_for_end: {
      is_procedure: true,
      gives: :value,
      takes: { job_ids: 'bigint[]', max_wait: 'interval', any_of: 'bool' },
      type: 'int'
    },
    ended: {
      gives: :rows,
      takes: { job_ids: 'bigint[]' },
      columns: {
        id: 'bigint', state: 'pulse.finished_state', result: 'json', last_error: 'text',
        finished_at: 'timestamptz'
      }
    },
    schedule: {
      gives: :row,
      takes: {
        name: 'text', identifier: 'text', cron: 'text', every: 'interval', payload: 'json',
        time_zone: 'text', queue_name: 'text', max_attempts: 'int', priority: 'int',
        flags: 'text[]', job_key: 'text', job_key_mode: 'text', missed: 'text',
        missed_for: 'interval', overlap: 'text', paused: 'bool'
      },
      columns: ROWS[:schedule]
    },
    unschedule: {
      gives: :value,
      takes: { name: 'text' },
      type: 'bool'
    },
    pause_schedule: {
      gives: :row,
      takes: { name: 'text' },
      columns: ROWS[:schedule]
    },
    resume_schedule: {
      gives: :row,
      takes: { name: 'text' },
      columns: ROWS[:schedule]
    },
    run_schedule_now: {
      gives: :row,
      takes: { name: 'text' },
      columns: ROWS[:job]
    },
    next_runs: {
      gives: :values,
      takes: { name: 'text', max_runs: 'int', after: 'timestamptz' },
      type: 'timestamptz'
    },
    cron_runs: {
      gives: :values,
      takes: {
        cron: 'text', time_zone: 'text', max_runs: 'int', after: 'timestamptz'
      },
      type: 'timestamptz'
    },
    load_crontab: {
      gives: :rows,
      takes: { set_name: 'text', items: 'json' },
      columns: { name: 'text', change: 'text' }
    },
    set_task: {
      gives: :row,
      takes: {
        identifier: 'text', max_attempts: 'int', timeout: 'interval', stall_timeout: 'interval',
        backoff: 'text', backoff_base: 'interval', backoff_cap: 'interval',
        jitter: 'double precision', keep_completed: 'interval', max_crashes: 'int',
        on_unreachable: 'text', handler: 'regprocedure', expires_after: 'interval', queue: 'text',
        dead_letter: 'text'
      },
      columns: ROWS[:task]
    },
    unset_task: {
      gives: :value,
      takes: { identifier: 'text' },
      type: 'bool'
    },
    set_queue: {
      gives: :row,
      takes: {
        queue_name: 'text', concurrency: 'int', paused: 'bool', total: 'int', rate: 'int',
        per: 'interval', burst: 'int', fair: 'bool', weight: 'int', strict: 'bool',
        on_dead: 'text'
      },
      columns: ROWS[:queue]
    },
    unset_queue: {
      gives: :value,
      takes: { queue_name: 'text' },
      type: 'bool'
    },
    pause_queue: {
      gives: :row,
      takes: { queue_name: 'text' },
      columns: ROWS[:queue]
    },
    resume_queue: {
      gives: :row,
      takes: { queue_name: 'text' },
      columns: ROWS[:queue]
    },
    cancel_job: {
      gives: :value,
      takes: { job_id: 'bigint', reason: 'text' },
      type: 'text'
    },
    cancel_flow: {
      gives: :value,
      takes: { flow_id: 'bigint', reason: 'text' },
      type: 'int'
    },
    retry_job: {
      gives: :row,
      takes: { job_id: 'bigint' },
      columns: ROWS[:job]
    },
    requeue_job: {
      gives: :value,
      takes: { job_id: 'bigint', reason: 'text' },
      type: 'bool'
    },
    reschedule_jobs: {
      gives: :rows,
      takes: {
        job_ids: 'bigint[]', run_at: 'timestamptz', priority: 'int', attempts: 'int',
        max_attempts: 'int'
      },
      columns: ROWS[:job]
    },
    complete_jobs: {
      gives: :rows,
      takes: { job_ids: 'bigint[]' },
      columns: ROWS[:job]
    },
    permanently_fail_jobs: {
      gives: :rows,
      takes: { job_ids: 'bigint[]', error_message: 'text' },
      columns: ROWS[:job]
    },
    operation_actions: {
      gives: :rows,
      takes: {  },
      columns: { action: 'text', states: 'text[]', usual_states: 'text[]' }
    },
    preview_operation: {
      gives: :row,
      takes: { action: 'text', filter: 'json' },
      columns: { jobs: 'bigint', is_exact: 'bool', sample_ids: 'bigint[]' }
    },
    start_operation: {
      gives: :row,
      takes: { action: 'text', filter: 'json', arguments: 'json', actor: 'text' },
      columns: ROWS[:operation]
    },
    run_operation: {
      gives: :row,
      takes: { operation_id: 'bigint', max_jobs: 'int' },
      columns: ROWS[:operation]
    },
    stop_operation: {
      gives: :row,
      takes: { operation_id: 'bigint' },
      columns: ROWS[:operation]
    },
    undo_operation: {
      gives: :row,
      takes: { operation_id: 'bigint', actor: 'text' },
      columns: ROWS[:operation]
    },
    note_operation: {
      gives: :value,
      takes: { action: 'text', subject: 'json', actor: 'text' },
      type: 'bigint'
    },
    delete_finished: {
      gives: :value,
      takes: {
        job_ids: 'bigint[]', older_than: 'interval', state: 'pulse.finished_state',
        max_jobs: 'int'
      },
      type: 'int'
    },
    drain_worker: {
      gives: :value,
      takes: { worker_id: 'bigint' },
      type: 'text'
    },
    stop_worker: {
      gives: :value,
      takes: { worker_id: 'bigint' },
      type: 'text'
    },
    drain_workers: {
      gives: :value,
      takes: { worker_names: 'text[]' },
      type: 'int'
    },
    stop_workers: {
      gives: :value,
      takes: { worker_names: 'text[]' },
      type: 'int'
    },
    force_unlock_workers: {
      gives: :value,
      takes: { worker_names: 'text[]' },
      type: 'int'
    },
    import_graphile_worker: {
      gives: :rows,
      takes: { schema: 'text', dry_run: 'bool' },
      columns: { what: 'text', outcome: 'text', jobs: 'bigint', detail: 'text' }
    }
  }.freeze

  # A method for each function of the schema pulse that an application calls.
  module Functions
    # Adds a job in the caller's transaction, and returns the row. NULL takes the default: for
    # run_at the time of the transaction, for max_attempts the number of the task, for priority 0.
    # With a job_key, a waiting job of the same key is replaced (replace), is replaced but keeps
    # its run_at (preserve_run_at), or stays unchanged (dedupe, or unsafe_dedupe). A role that may
    # not read pulse.job sees neither payload nor token nor worker of an older job. Raises PU004
    # for a name or value out of range, 42501 for a job_key under which a job of another producer
    # lives, and 40001 for a job_key that another session took after a REPEATABLE READ or
    # SERIALIZABLE transaction had begun: repeat the transaction.
    def add_job(
      db, identifier, payload = OMITTED, queue_name: OMITTED, run_at: OMITTED,
      max_attempts: OMITTED, job_key: OMITTED, priority: OMITTED, flags: OMITTED,
      job_key_mode: OMITTED
    )
      call(db, :add_job, {
        identifier:, payload:, queue_name:, run_at:, max_attempts:, job_key:, priority:, flags:,
        job_key_mode:
      })
    end

    # Adds a job as add_job does, and lets it wait until the jobs of these ids have ended; returns
    # the row. starts_when: completed (all did; else the new job ends as cancelled), ended (in
    # whatever way) or failed (at least one did not complete; else the new job ends as cancelled,
    # not needed). start_by: the job ends as expired unless a claim takes it in time. {} waits for
    # nothing. An id whose job no longer has a row counts as completed; the call waits for a
    # transaction that deletes or retries an ended parent. Raises PU004 for a name or value out of
    # range and for a job that would wait for itself, 42501 and 40001 as add_job does, PU005 for
    # an id never given out or lost in a failover, for a parent that an open transaction adds, and
    # for a job of another producer.
    def add_job_after(
      db, after, identifier, payload = OMITTED, queue_name: OMITTED, run_at: OMITTED,
      max_attempts: OMITTED, job_key: OMITTED, priority: OMITTED, flags: OMITTED,
      job_key_mode: OMITTED, starts_when: OMITTED, start_by: OMITTED
    )
      call(db, :add_job_after, {
        after:, identifier:, payload:, queue_name:, run_at:, max_attempts:, job_key:, priority:,
        flags:, job_key_mode:, starts_when:, start_by:
      })
    end

    # Adds jobs that wait for each other, in the caller's transaction, and returns the id of each,
    # in the order of the array. jobs: an array of objects with the arguments of add_job_after; in
    # after stand keys of jobs of the flow, in any order, and ids of other jobs, as numbers. key:
    # a string, which a job needs that others name. flow_name: for the view flows, at most 512
    # characters. Raises PU004 for a value out of range, an unknown member or key, and jobs that
    # wait for each other, 42501 and 40001 as add_job does, PU005 for an id never given out, lost
    # in a failover or not committed, and for a job of another producer.
    def add_flow(db, jobs, flow_name: OMITTED)
      call(db, :add_flow, {jobs:, flow_name:})
    end

    # Lets a job that no worker has claimed wait for more jobs. This transaction must have added
    # the parents, and no parent may wait for a job older than the waiting job. So a running job
    # of a batch adds members to the last job of the batch. Raises PU004 for any other job, PU005
    # for an unknown job and for a job of another producer.
    def add_dependency(db, job_id, after)
      call(db, :add_dependency, {job_id:, after:})
    end

    # Adds many jobs in the caller's transaction, and returns the rows in the same order. Of two
    # jobs with one key the last wins; payloads that are arrays are concatenated.
    # job_key_preserve_run_at => true keeps the run_at of a replaced job. Raises PU004 for a name
    # or value out of range, 42501 and 40001 as add_job does.
    def add_jobs(db, specs, job_key_preserve_run_at: OMITTED)
      call(db, :add_jobs, {specs:, job_key_preserve_run_at:})
    end

    # Adds a job as add_job does, unless a job of this task and unique_key was added less than
    # unique_for (1 ms to 10 years; a day is 24 hours) before: then returns that job, with is_new
    # false. The period lasts from created_at of the first job, whatever becomes of that job; its
    # own unique_for counts. states narrows that: a first job in none of these states (waiting,
    # running, completed, failed, cancelled, quarantined, expired) is forgotten, and the new job
    # is remembered. state: of the job; a job without a record counts as completed. While another
    # transaction adds under the key, the call waits for the end of that transaction. Raises PU004
    # for a name or value out of range, 42501 where another producer has the key, and 40001 where
    # another session took the key after a REPEATABLE READ or SERIALIZABLE transaction had begun:
    # repeat the transaction.
    def add_job_once(
      db, unique_for, unique_key, identifier, payload = OMITTED, queue_name: OMITTED,
      run_at: OMITTED, max_attempts: OMITTED, priority: OMITTED, flags: OMITTED, states: OMITTED
    )
      call(db, :add_job_once, {
        unique_for:, unique_key:, identifier:, payload:, queue_name:, run_at:, max_attempts:,
        priority:, flags:, states:
      })
    end

    # Ends the period of a key of add_job_once, so that the next add under the key is new; leaves
    # the job as it is. Returns whether the key had a period that was not over. Raises 42501 where
    # another producer has the key.
    def forget_once(db, identifier, unique_key)
      call(db, :forget_once, {identifier:, unique_key:})
    end

    # Adds a job as add_job does, once for each idempotency_key of this client of the calling role
    # (names and key of at most 255 characters), and notes the key in the same transaction for as
    # long as pulse.keep_idempotency_keys says. outcome: added; replayed, with the values that the
    # first call returned, also when the job has ended; other_request, where the key was given
    # with another request_hash; in_progress, where another transaction adds under the key and has
    # not ended within a second. Raises the errors of add_job, and PU004 for a name, key or hash
    # that is NULL, empty or too long.
    def add_job_for_request(
      db, client, idempotency_key, request_hash, identifier, payload = OMITTED,
      queue_name: OMITTED, run_at: OMITTED, max_attempts: OMITTED, job_key: OMITTED,
      priority: OMITTED, flags: OMITTED, job_key_mode: OMITTED
    )
      call(db, :add_job_for_request, {
        client:, idempotency_key:, request_hash:, identifier:, payload:, queue_name:, run_at:,
        max_attempts:, job_key:, priority:, flags:, job_key_mode:
      })
    end

    # Deletes the waiting job of this key, and returns the row; if other jobs wait for it, the job
    # ends as cancelled instead. A running job loses the key and is not retried. Returns NULL for
    # a key that no job of the caller's producer has. A role that may not read pulse.job sees
    # neither payload nor token nor worker of the job. Raises 40001 as add_job does.
    def remove_job(db, job_key)
      call(db, :remove_job, {job_key:})
    end

    # Returns when all of these jobs have ended, with any_of => true when one job has ended, or
    # after max_wait (at most 1 day). ended: how many jobs have ended, in whatever way; a job
    # without a row has ended, unless a transaction in progress adds the job. Holds no snapshot
    # and no transaction id during the wait. Raises PU004 for a value out of range and for more
    # than 10,000 ids, PU005 for an id never given out or lost in a failover, PU006 inside a
    # transaction block, 25006 on a standby.
    def wait_for_end(db, job_ids, max_wait: OMITTED, any_of: OMITTED)
      call(db, :wait_for_end, {job_ids:, max_wait:, any_of:})
    end

    # Returns how each of these jobs ended, in the order of the ids; leaves out jobs that have not
    # ended or are not kept. Completed jobs are kept where keep_completed of the task or the
    # server says so; all other jobs as long as pulse.keep_failed says. Raises PU005 for an id
    # lost in a failover, 25006 on a standby.
    def ended(db, job_ids)
      call(db, :ended, {job_ids:})
    end

    # Stores a schedule, which adds a job of the task identifier at each due time, and returns the
    # schedule. Give cron (five fields as in crontab(5), or @hourly to @yearly, in time_zone; NULL
    # means UTC) or every (elapsed time, at least 1 s). The arguments from payload to job_key_mode
    # are as in add_job. missed is for due times at which no session swept: skip, once (one job
    # for all), all (each due time that is at most missed_for old). overlap is for a due time at
    # which the job before still waits or runs: allow, skip, replace (a waiting job). A call with
    # the same rule and time_zone keeps the phase and changes the rest; another rule starts from
    # now. paused: NULL leaves the pause unchanged. Raises PU004 for a value out of range.
    def schedule(
      db, name, identifier, cron: OMITTED, every: OMITTED, payload: OMITTED, time_zone: OMITTED,
      queue_name: OMITTED, max_attempts: OMITTED, priority: OMITTED, flags: OMITTED,
      job_key: OMITTED, job_key_mode: OMITTED, missed: OMITTED, missed_for: OMITTED,
      overlap: OMITTED, paused: OMITTED
    )
      call(db, :schedule, {
        name:, identifier:, cron:, every:, payload:, time_zone:, queue_name:, max_attempts:,
        priority:, flags:, job_key:, job_key_mode:, missed:, missed_for:, overlap:, paused:
      })
    end

    # Deletes a schedule, and returns whether there was one. Jobs that the schedule has added
    # stay.
    def unschedule(db, name)
      call(db, :unschedule, {name:})
    end

    # Stops a schedule from adding jobs until resume_schedule. Due times that have passed, and
    # that no sweep has settled, count as missed; due times during the pause are not counted. A
    # role that may not read pulse.schedule sees no payload. Raises PU005 for an unknown schedule.
    def pause_schedule(db, name)
      call(db, :pause_schedule, {name:})
    end

    # Starts a schedule from now: the next due time is the first in the future, whatever the
    # schedule has settled. A role that may not read pulse.schedule sees no payload. Raises PU005
    # for an unknown schedule.
    def resume_schedule(db, name)
      call(db, :resume_schedule, {name:})
    end

    # Adds the job of a schedule at once and returns it, whether or not the schedule is paused.
    # The job has no scheduled_for. The call moves no due time and does not ask overlap. A role
    # that may not read pulse.job sees no payload. Raises PU005 for an unknown schedule.
    def run_schedule_now(db, name)
      call(db, :run_schedule_now, {name:})
    end

    # Returns the first max_runs (1 to 100000) due times of a schedule later than after, as if the
    # schedule were not paused. NULL means now, or the last due time if the clock was set back
    # before that due time. Raises PU004 for max_runs or after out of range, PU005 for an unknown
    # schedule.
    def next_runs(db, name, max_runs: OMITTED, after: OMITTED)
      call(db, :next_runs, {name:, max_runs:, after:})
    end

    # Returns the first max_runs (1 to 100000) due times of a cron rule later than after; NULL
    # means now. Raises PU004 for a text that is no rule, for a rule that no day of eight years
    # matches, and for an unknown time zone.
    def cron_runs(
      db, cron, time_zone: OMITTED, max_runs: OMITTED, after: OMITTED
    )
      call(db, :cron_runs, {cron:, time_zone:, max_runs:, after:})
    end

    # Makes the schedules of a crontab equal to items: an array of objects with name, identifier
    # and cron (in UTC), and if wanted payload (an object), fill (an interval: missed due times of
    # so long are made up for), queue_name, max_attempts, priority, job_key, job_key_mode.
    # Schedules of this set that items does not name are paused, and deleted a day later unless a
    # call names them again. Returns each name with added, changed, resumed, paused or unchanged.
    # pulse-worker --crontab calls the function. Raises PU004 for a value out of range, a name
    # given twice, and a schedule that is not of this set.
    def load_crontab(db, set_name, items)
      call(db, :load_crontab, {set_name:, items:})
    end

    # Stores settings of a task and returns all settings; NULL leaves a setting unchanged. The
    # table pulse.task describes each setting. queue is for later jobs that are added without a
    # queue: {member} stands for a string or number of the payload, {member|default} for a member
    # that may be missing, and '' takes the queue away. dead_letter is the task of the job that is
    # added when a job of this task ends failed, quarantined or expired, and '' takes the setting
    # away. Raises PU004 for a value out of range and for a handler that cannot take a job, 42501
    # for a new handler that the caller may not execute.
    def set_task(
      db, identifier, max_attempts: OMITTED, timeout: OMITTED, stall_timeout: OMITTED,
      backoff: OMITTED, backoff_base: OMITTED, backoff_cap: OMITTED, jitter: OMITTED,
      keep_completed: OMITTED, max_crashes: OMITTED, on_unreachable: OMITTED, handler: OMITTED,
      expires_after: OMITTED, queue: OMITTED, dead_letter: OMITTED
    )
      call(db, :set_task, {
        identifier:, max_attempts:, timeout:, stall_timeout:, backoff:, backoff_base:,
        backoff_cap:, jitter:, keep_completed:, max_crashes:, on_unreachable:, handler:,
        expires_after:, queue:, dead_letter:
      })
    end

    # Takes all settings of a task away, the handler too, and returns whether the task had any.
    # From then on the task has the defaults. Jobs keep the values that they got when added:
    # max_attempts, start_by and queue. Raises PU004 as set_task does.
    def unset_task(db, identifier)
      call(db, :unset_task, {identifier:})
    end

    # Stores settings of a queue and returns the settings that hold for it; NULL leaves a setting
    # unchanged, -1 takes a limit away. concurrency (1 to 1000000) is how many jobs of exactly
    # this name run at a time; total, how many jobs of the queue and of all queues within it:
    # mail/x is within mail. Of the same jobs, rate (1 to 1000000) are claimed in each per (1 s to
    # 366 days, of 24 hours; 1 s), and burst (as many as rate) at once. paused => true calls
    # pause_queue, false resume_queue, of any queue; without another argument no setting is
    # stored. Where a level is fair the queues within the level, however deep, take turns to start
    # jobs, and weight (1 to 1000) is how many jobs a queue starts in a turn. The outermost fair
    # level gives the turns; fair and weight of a level between do nothing, which a notice tells.
    # The name mail/* stands for the members of mail that have no settings of their own; the
    # weight of mail/* holds for deeper queues too, unless a nearer level has settings of members.
    # Running jobs go on. A strict queue runs one job at a time: once a job has been claimed, no
    # other job starts before that job has ended, whatever retries the job has. on_dead says how a
    # strict queue acts when a job ends failed, quarantined or expired: continue, or pause, which
    # resume_queue ends. Raises PU004 for a value out of range, a name of more than four levels, a
    # strict queue of another concurrency than 1, on_dead pause without strict, and per or burst
    # without rate.
    def set_queue(
      db, queue_name, concurrency: OMITTED, paused: OMITTED, total: OMITTED, rate: OMITTED,
      per: OMITTED, burst: OMITTED, fair: OMITTED, weight: OMITTED, strict: OMITTED,
      on_dead: OMITTED
    )
      call(db, :set_queue, {
        queue_name:, concurrency:, paused:, total:, rate:, per:, burst:, fair:, weight:, strict:,
        on_dead:
      })
    end

    # Takes away all settings of a queue and its pause, and returns whether it had any. From then
    # on it has the settings of the members of its level (mail/* for mail/x) if such settings are
    # stored, else it runs one job at a time. Running jobs go on. Raises PU004 as set_queue does.
    def unset_queue(db, queue_name)
      call(db, :unset_queue, {queue_name:})
    end

    # Pauses a queue and all queues within it, and returns the settings that hold for the queue,
    # which stay: once the call commits, no worker claims a job of the queues before resume_queue.
    # The name mail/* stands for the direct members of mail that no operator paused or resumed by
    # name. Running jobs go on. A notice says if the queue has neither settings nor jobs. Raises
    # PU004 as set_queue does.
    def pause_queue(db, queue_name)
      call(db, :pause_queue, {queue_name:})
    end

    # Ends the pause of a queue, also a pause that the end of a job began, and returns the
    # settings that hold for the queue, which stay. Raises PU005 for a queue that has no settings
    # of its own and was not paused.
    def resume_queue(db, queue_name)
      call(db, :resume_queue, {queue_name:})
    end

    # Cancels a job. A waiting job ends at once. A running job is flagged, and each heartbeat
    # tells the worker; if the job completes first, the completion wins, and any other end is
    # recorded as cancelled. Returns cancelled, running (flagged), or the state in which the job
    # had already ended: completed also where the job has no row, and its flow, a job that waits
    # for it or its schedule knows of the completion. Raises PU005 for an unknown job, 55P03 where
    # another transaction, as a producer's keyed add, holds the job for more than a second: then
    # nothing has changed.
    def cancel_job(db, job_id, reason: OMITTED)
      call(db, :cancel_job, {job_id:, reason:})
    end

    # Cancels each live job of a flow as cancel_job does, and returns the number of cancelled
    # jobs. Jobs outside of the flow follow the jobs that they wait for. Raises PU005 for an
    # unknown flow, 55P03 where cancel_job raises it for a job of the flow: then no job is
    # cancelled.
    def cancel_flow(db, flow_id, reason: OMITTED)
      call(db, :cancel_flow, {flow_id:, reason:})
    end

    # Makes a job that ended without completing live again, due at once, with its id, its
    # checkpoint and all attempts, and returns the job; a start_by in the past is taken away. A
    # job that is still live is returned unchanged, with a notice. Raises PU005 for an unknown
    # job, PU010 for a completed job, while another live job has the key, and while a transaction
    # in progress adds or removes a job under the key, 55P03 where another transaction, as one
    # that adds a job after this job, holds the record for more than a second.
    def retry_job(db, job_id)
      call(db, :retry_job, {job_id:})
    end

    # Takes a running job from its worker, whose token is void from then on. The call consumes the
    # attempt and counts no crash; the job is ready again at once, or failed after the last
    # attempt. Returns false for a job that does not run. Raises PU005 for an unknown job, 55P03
    # where another transaction holds the job for more than a second.
    def requeue_job(db, job_id, reason)
      call(db, :requeue_job, {job_id:, reason:})
    end

    # Changes waiting and failed jobs and returns them; NULL leaves a value unchanged. A failed
    # job that gets an attempt again, by attempts or max_attempts, goes live again; any other
    # failed job stays failed and has a state of NULL. Running, quarantined, cancelled and expired
    # jobs, failed jobs whose key a live job has, and jobs locked by another transaction, are left
    # alone, with a notice. Ids of no job, and NULL, name no job. A job keeps its start_by. Raises
    # PU004 for a value out of range, for a waiting job that would be left without an attempt and
    # for a failed job that would have used more attempts than max_attempts, PU005 for an id lost
    # in a failover.
    def reschedule_jobs(
      db, job_ids, run_at: OMITTED, priority: OMITTED, attempts: OMITTED, max_attempts: OMITTED
    )
      call(db, :reschedule_jobs, {
        job_ids:, run_at:, priority:, attempts:, max_attempts:
      })
    end

    # Completes waiting and failed jobs by hand and returns them as they were, failed jobs with a
    # state of NULL. keep_completed decides whether they are kept. Running, quarantined, cancelled
    # and expired jobs, and jobs locked by another transaction, are left alone, with a notice. Ids
    # of no job, and NULL, name no job. Raises PU005 for an id lost in a failover.
    def complete_jobs(db, job_ids)
      call(db, :complete_jobs, {job_ids:})
    end

    # Ends waiting jobs as failed and returns the jobs; failed jobs get the new message, and have
    # a state of NULL. error_message becomes the last_error; NULL stands for "Manually marked as
    # failed". Running, quarantined, cancelled and expired jobs, and jobs locked by another
    # transaction, are left alone, with a notice. Ids of no job, and NULL, name no job. Raises
    # PU005 for an id lost in a failover.
    def permanently_fail_jobs(db, job_ids, error_message: OMITTED)
      call(db, :permanently_fail_jobs, {job_ids:, error_message:})
    end

    # Returns the actions of start_operation(), the states of the jobs that each action may
    # change, and the states that the action changes where a filter names neither states nor ids.
    def operation_actions(db)
      call(db, :operation_actions, {})
    end

    # Returns how many jobs an operation would be about, and the first 20 jobs; changes nothing.
    # The function reads 110,000 ended jobs at most, or 80,000 live jobs; for error and error_line
    # 20,000, with 8 MB of errors: is_exact is false where there may be more, and jobs then counts
    # only the jobs found. action and filter: as for start_operation(). Raises PU004 and PU005 as
    # start_operation() does.
    def preview_operation(db, action, filter)
      call(db, :preview_operation, {action:, filter:})
    end

    # Notes that an operator is about to change many jobs, and returns the operation;
    # run_operation() makes the changes. action: retry (failed and quarantined jobs), cancel,
    # reschedule or fail (waiting jobs). filter: conditions, all of which a job must meet: states,
    # task, queue, key, error (a part of the last error), error_line (of the last error, as
    # list_failures() returns it), ids, older_than and newer_than (by the time of the add). {}
    # means every job. arguments: reason of cancel, error of fail, run_at, priority, attempts and
    # max_attempts of reschedule. Jobs added later are left alone. actor: for the record, the
    # person or program behind the role, at most 128 characters. Raises PU004 for anything else,
    # PU005 for an id lost in a failover.
    def start_operation(
      db, action, filter, arguments: OMITTED, actor: OMITTED
    )
      call(db, :start_operation, {action:, filter:, arguments:, actor:})
    end

    # Makes the next step of an operation, with at most max_jobs jobs (1 to 10000) among the next
    # 20,000, and returns the operation: repeat the call, each time in a transaction of its own,
    # while the state is running. A call that fails or whose client dies changes nothing, and the
    # next call goes on from the step before. A step waits for no job and no key; jobs that the
    # step leaves alone count as skipped, jobs whose change raises an error (of a trigger)
    # included. Raises PU004 for max_jobs out of range, PU005 for an unknown operation, PU007
    # outside READ COMMITTED.
    def run_operation(db, operation_id, max_jobs: OMITTED)
      call(db, :run_operation, {operation_id:, max_jobs:})
    end

    # Ends an operation before the last step, and returns it; changes of earlier steps stay. An
    # ended operation is returned unchanged. Raises PU005 for an unknown operation.
    def stop_operation(db, operation_id)
      call(db, :stop_operation, {operation_id:})
    end

    # Starts an operation that takes another operation back, and returns the new operation;
    # run_operation() makes the changes. The call stops the other operation if it still runs. Jobs
    # that have moved since, because they ran, ended or were changed, are left alone and count as
    # skipped, as do jobs that cannot come back: skipped_because counts the reasons, and
    # pulse.operation_job.undo has the reason of each job. A second call returns the same undo.
    # Raises PU004 for an undo and for a change that note_operation() noted, PU005 for an unknown
    # operation.
    def undo_operation(db, operation_id, actor: OMITTED)
      call(db, :undo_operation, {operation_id:, actor:})
    end

    # Puts on record, among the operations, that an operator has changed an object other than
    # jobs, in the transaction of the change, and returns the id. action: a name of the change, as
    # "pause queue", at most 64 characters. subject: an object that names the changed object, at
    # most 4096 bytes. actor: as for start_operation(). Raises PU004 for anything else.
    def note_operation(db, action, subject, actor: OMITTED)
      call(db, :note_operation, {action:, subject:, actor:})
    end

    # Deletes finished jobs and returns how many: the jobs that match each condition given, at
    # most max_jobs (1 to 1000000); repeat the call while it returns max_jobs. NULL sets no
    # condition. The attempts of the jobs stay until keep_attempts. A line of the server's log
    # says which role deleted how many. Jobs locked by another transaction stay, and jobs for
    # which others wait. Raises PU004 without any condition and for max_jobs out of range, PU005
    # for an id lost in a failover.
    def delete_finished(
      db, job_ids: OMITTED, older_than: OMITTED, state: OMITTED, max_jobs: OMITTED
    )
      call(db, :delete_finished, {job_ids:, older_than:, state:, max_jobs:})
    end

    # Asks a worker to drain: it gets no more jobs, finishes its jobs, without a limit, and
    # leaves. Returns draining, stopping (asked before), or lost or stopped when the worker has
    # ended. Make the call outside a transaction block, which would hold up the worker's
    # heartbeats. Raises PU002 for an unknown worker.
    def drain_worker(db, worker_id)
      call(db, :drain_worker, {worker_id:})
    end

    # Asks a worker to stop: it gets no more jobs, finishes its jobs within its own grace period,
    # and leaves. Returns stopping, or lost or stopped when the worker has ended. Make the call
    # outside a transaction block, which would hold up the worker's heartbeats. Raises PU002 for
    # an unknown worker.
    def stop_worker(db, worker_id)
      call(db, :stop_worker, {worker_id:})
    end

    # Asks every living worker of these names to drain, as drain_worker does, and returns how many
    # workers. A notice lists the names that no living worker has; NULL names no worker.
    def drain_workers(db, worker_names)
      call(db, :drain_workers, {worker_names:})
    end

    # Asks every living worker of these names to stop, as stop_worker does, and returns how many
    # workers. A notice lists the names that no living worker has; NULL names no worker.
    def stop_workers(db, worker_names)
      call(db, :stop_workers, {worker_names:})
    end

    # Declares every worker of these names lost, living workers too, recovers their jobs and
    # returns how many. The call consumes the attempts and counts no crash; the jobs are ready
    # again at once, or failed after the last attempt. The call leaves a worker with a claim in
    # progress alone, with a warning; NULL names no worker. Raises PU007 outside READ COMMITTED.
    def force_unlock_workers(db, worker_names)
      call(db, :force_unlock_workers, {worker_names:})
    end

    # Moves the jobs of Graphile Worker (0.14 or later) in this schema here: payload, queue,
    # priority, run_at, attempts, max_attempts, key, flags, last error. Jobs whose attempts are
    # used up become failed jobs. Returns which jobs the call took and which jobs stay there, and
    # why; dry_run => true returns the same and changes nothing. Producers and workers of Graphile
    # Worker wait until the transaction ends. Needs the rights of both owners. Raises PU004 for a
    # dry_run of NULL, PU005 where the schema has no such jobs, PU007 outside READ COMMITTED,
    # 42501 where the tables would run another role's code, 55006 while workers of Graphile Worker
    # hold jobs or queues.
    def import_graphile_worker(db, schema: OMITTED, dry_run: OMITTED)
      call(db, :import_graphile_worker, {schema:, dry_run:})
    end
  end
end
