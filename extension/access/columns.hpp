// Columns of the extension's tables by number. sql/structure/tables.sql and this file change
// together.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// pulse.job
enum JobColumn : AttrNumber {
  kJobId = 1,
  kJobIdentifier,
  kJobPayload,
  kJobQueueName,
  kJobPriority,
  kJobRunAt,
  kJobState,
  kJobAttempts,
  kJobMaxAttempts,
  kJobCrashes,
  kJobKey,
  kJobFlags,
  kJobWorkerId,
  kJobToken,
  kJobClaimedAt,
  kJobLastActivityAt,
  kJobStage,
  kJobProgress,
  kJobMessage,
  kJobCheckpoint,
  kJobLastError,
  kJobRecovered,
  kJobRevision,
  kJobCreatedAt,
  kJobUpdatedAt,
  kJobClaimedLive,
  kJobActivityLive,
  kJobCancelRequestedAt,
  kJobCancelReason,
  kJobSuperseded,
  kJobInPlace,
  kJobWaitsOn,  // since 0.2.0
  kJobKeyIsUndecided,
  kJobRunningWorkerId,
  kJobIndexLane,
  kJobScheduledFor,
  kJobStartBy,
  kJobStartsWhen,
  kJobSuccession,
  kJobKeepsResult,
  kJobParents,
  kJobTraceparent,
  kJobAddedBy,
  kJobDeadLetterOf,
  kJobColumns = kJobDeadLetterOf,
};

// pulse.superseded_job
enum SupersededColumn : AttrNumber { kSupersededKey = 1, kSupersededJobId };

// The primary key of pulse.remembered_key
enum RememberedColumn : AttrNumber { kRememberedUniqueKey = 1, kRememberedIdentifier };

// pulse.claim_batch
enum BatchColumn : AttrNumber {
  kBatchWorkerId = 1,
  kBatchToken,
  kBatchRemainingJobs,
  kBatchJobIds
};

// pulse.heartbeat
enum HeartbeatColumn : AttrNumber {
  kBeatWorkerId = 1,
  kBeatLive,
  kBeatLastHeartbeatAt,
  kBeatStatus,
  kBeatInterval,
  kBeatThreshold,
  kBeatAttachment,
  kBeatIncarnation,
  kBeatDetachedLive,
  kBeatIsolatedJobId,
  kBeatLostCause,
  kBeatMissingJobIds,
  kBeatMissingTokens,
  kBeatDefaultTimeout,  // since 0.2.0
};

// pulse.worker
enum WorkerColumn : AttrNumber {
  kWorkerTasks = 8,
};

// pulse.clock
enum ClockColumn : AttrNumber {
  kClockVt = 2,
  kClockLastTick,
  kClockTimeline,
};

// pulse.queue
enum QueueColumn : AttrNumber {
  kQueueConcurrency = 2,
  kQueuePaused,
};

// pulse.queue_pause
enum PauseColumn : AttrNumber { kPauseQueueName = 1, kPauseJobId, kPauseCreatedAt, kPauseIsPaused };

// pulse.queue_rate
enum RateColumn : AttrNumber { kRateQueueName = 1, kRateFullLive, kRateOpened };

// pulse.task
enum TaskColumn : AttrNumber {
  kTaskMaxAttempts = 2,
  kTaskTimeout,
  kTaskStallTimeout,
  kTaskBackoff,
  kTaskBackoffBase,
  kTaskBackoffCap,
  kTaskJitter,
  kTaskKeepCompleted,
  kTaskMaxCrashes,
  kTaskOnUnreachable,
  kTaskHandler,
  kTaskCreatedAt,
  kTaskUpdatedAt,
  kTaskExpiresAfter,  // since 0.2.0
};

// pulse.attempt
enum AttemptColumn : AttrNumber {
  kAttemptJobId = 1,
  kAttemptToken,
  kAttemptNumber,
  kAttemptWorkerId,
  kAttemptClaimedAt,
  kAttemptEndedAt,
  kAttemptOutcome,
  kAttemptError,
  kAttemptColumns = kAttemptError,
};

// pulse.dependency
enum DependencyColumn : AttrNumber { kDependencyChildId = 1, kDependencyParents = 3 };

// pulse.finished_job: the columns that differ from the columns of pulse.job
enum FinishedColumn : AttrNumber {
  kFinishedPayload = 3,
  kFinishedState = 7,
  kFinishedCrashes = 10,
  kFinishedResult = 17,
  kFinishedLastError = 18,
  kFinishedAt = 21,
  kFinishedScheduledFor,  // since 0.2.0
  kFinishedStartsWhen,
  kFinishedCancelledBy,
  kFinishedParents,
  kFinishedTraceparent,
  kFinishedStartBy,
  kFinishedKeepsResult,
  kFinishedAddedBy,
  kFinishedBeforeEnd,
  kFinishedDeadLetterOf,
};

// pulse.installation
enum InstallationColumn : AttrNumber {
  kInstallationIdCeiling = 10,  // since 0.2.0
};

// pulse.id_gap
enum IdGapColumn : AttrNumber {
  kIdGapTo = 1,
};

}  // namespace pulse
