#!/usr/bin/env node
// Beats on a session of its own while a job runs, and aborts a job whose claim is lost. When it is
// lost itself it ends; when the server goes, with the error. Its supervisor starts it anew.
import pg from 'pg'

const pool = new pg.Pool(), db = await pool.connect(), beats = await pool.connect()
const { rows: [{ id: me }] } = await beats.query(`SELECT id, pulse.attach_worker(id)
  FROM pulse.register_worker('beating worker', '{fetch}', heartbeat_interval => '1 s')`)
let beat = { status: 'alive' }, stop = false, job, work
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => { stop = true })
setInterval(async () => { // 0: no job; what a lost reply claimed goes back
  beat = (await beats.query('SELECT * FROM pulse.heartbeat($1, $2)', [me, [job?.id ?? 0]])).rows[0]
  if (beat.revoked.concat(beat.cancelled).includes(job?.id)) work.abort() }, 1000)
while (!stop && beat.status === 'alive') {
  await db.query('SELECT pulse.sweep()')
  await db.query("CALL pulse.wait_for_job($1, '2 s')", [me])
  job = (await db.query('SELECT id, token, payload FROM pulse.claim($1)', [me]) // PU002: lost
    .catch(error => { if (error.code === 'PU002') stop = true; else throw error }))?.rows[0]
  if (job) await fetch(job.payload?.url, work = new AbortController())
    .then(page => db.query('SELECT pulse.complete($1, $2, $3)', [job.id, job.token, page.status]))
    // PU001 too: the claim is lost, and this is only "stale".
    .catch(error => db.query('SELECT pulse.fail_many($1, $2, $3)',
      [[job.id], [job.token], [`${error} (${error.cause})`.replaceAll('\0', '')]]))
}
db.query('SELECT pulse.deregister_worker($1)', [me]).then(() => process.exit())
