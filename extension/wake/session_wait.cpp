#include "wake/session_wait.hpp"

#include "server/compat.hpp"
#include "server/errors.hpp"
#include "server/settings.hpp"

// From libpq/libpq.h, which cannot be included without Kerberos' headers.
extern "C" PGDLLIMPORT WaitEventSet* FeBeWaitSet;

namespace pulse {

constexpr int kClientSocketPosition = 0;
constexpr int kClientWaitEvents = 3;

void require_no_transaction_block(FunctionCallInfo fcinfo, const char* procedure) {
  auto* call = reinterpret_cast<CallContext*>(fcinfo->context);
  if (!call || !IsA(call, CallContext) || call->atomic)
    ereport(ERROR, (errcode(kNotInTransactionBlock),
                    errmsg("%s cannot run inside a transaction block", procedure),
                    errdetail("Waiting there would hold back vacuum."),
                    errhint("Call it by itself, outside BEGIN and outside functions.")));
}

int64 checked_max_wait_us(const Interval* max_wait) {
  int64 days = max_wait->day + max_wait->month * INT64CONST(30);
  int64 wait_us = max_wait->time;
  if (days < 0 || days > 1 || wait_us + days * USECS_PER_DAY < 0 ||
      wait_us + days * USECS_PER_DAY > USECS_PER_DAY)
    ereport(
        ERROR,
        (errcode(kOutOfRange),
         errmsg("max_wait is %s, out of range",
                DatumGetCString(DirectFunctionCall1(interval_out, IntervalPGetDatum(max_wait)))),
         errhint("It must be between 0 and 1 day; after 30 s a dead client frees its session.")));
  return wait_us + days * USECS_PER_DAY;
}

int64 poll_interval_us() { return settings.poll_interval_ms * INT64CONST(1000); }

void drop_snapshot() {
  if (SPI_connect_ext(SPI_OPT_NONATOMIC) != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
  SPI_commit();
  SPI_finish();
}

void sleep_for(int64 wait_us) {
  long timeout_ms = static_cast<long>((Max(wait_us, 0) + 999) / 1000);
  if (!FeBeWaitSet || kSocketClosed == 0) {
    WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, timeout_ms,
              PG_WAIT_EXTENSION);
  } else {
    WaitEvent events[kClientWaitEvents];
    ModifyWaitEvent(FeBeWaitSet, kClientSocketPosition, kSocketClosed, nullptr);
    int count =
        WaitEventSetWait(FeBeWaitSet, timeout_ms, events, kClientWaitEvents, PG_WAIT_EXTENSION);
    for (int i = 0; i < count; i++) {
      if (events[i].events & WL_POSTMASTER_DEATH) proc_exit(1);
      if (!(events[i].events & kSocketClosed)) continue;
      ClientConnectionLost = true;
      InterruptPending = true;
    }
  }
  ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
}

}  // namespace pulse
