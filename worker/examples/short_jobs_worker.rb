#!/usr/bin/env ruby
# Beats between jobs, and gives each half a heartbeat interval, so that no beat is late. When it is
# lost it ends; when the server goes, with the error. Its supervisor starts it anew.
%w[digest json pg timeout].each { |library| require library }

db = PG.connect
ask = ->(query, *values) { db.exec_params(query, values) }
me, half = db.exec("SELECT id, extract(epoch FROM heartbeat_interval) / 2, pulse.attach_worker(id)
  FROM pulse.register_worker('short jobs worker', '{checksum}')").values[0]
%w[INT TERM].each { |signal| trap(signal) { $stop = true } }
# The beat says that it holds no job, too: what a lost reply claimed goes back.
until $stop || ask.("SELECT status FROM pulse.heartbeat($1, '{}')", me).getvalue(0, 0) != "alive"
  ask.("SELECT id, token, payload FROM pulse.claim($1)", me).each_row do |job, token, payload|
    path = JSON.parse(payload).fetch("path")
    digest = Timeout.timeout(half.to_f) { Digest::SHA256.file(path).hexdigest }
    # One statement is one transaction: the row and the completion, or neither. The row comes first:
    # a repeat of the completion is refused once the transaction has written.
    ask.("WITH r AS (INSERT INTO checksum VALUES ($1, $3) RETURNING 1)
      SELECT pulse.complete($1, $2) FROM r", job, token, digest)
  rescue StandardError => error # PU001 too: the claim is lost, and this is only "stale"
    ask.("SELECT pulse.fail_many($1, $2, ARRAY[$3])", "{#{job}}", "{#{token}}",
         error.inspect.b.force_encoding("UTF-8").scrub.delete("\0"))
  end
  ask.("CALL pulse.wait_for_job($1, $2 * interval '1 s')", me, half)
  db.exec("SELECT pulse.sweep()")
end
ask.("SELECT pulse.deregister_worker($1)", me)
