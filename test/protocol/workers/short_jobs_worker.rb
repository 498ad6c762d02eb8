#!/usr/bin/env ruby
# worker/examples/short_jobs_worker.rb, with the steps of `act` in place of its checksum. The
# example gives a job half a heartbeat interval, here two seconds, and beats between jobs.
# options: --set pulse.heartbeat_interval=4s --set pulse.sweep_threshold=10s
# without: 1.4 2.1 2.5 2.6 2.7 2.8 4.5 4.6 7.2 7.3 8.1 8.2
require "json"

# {"kind": value}, the value as the text that it is, so that no digit is lost.
STEP = /\{\s*"(?<kind>\w+)"\s*:\s*(?<v>"(?:[^"\\]|\\.)*+"
  |\[(?:[^\[\]{}"]|\g<v>)*+\]|\{(?:[^\[\]{}"]|\g<v>)*+\}|[^\[\]{}",\s]+)/x

# Ends the job itself where the example has no word for the end: then "stale" follows.
def act(ask, job, token, steps)
  file = ENV.fetch("PULSE_FILE")
  result = nil
  call = ->(form, *values) { ask.("SELECT * FROM pulse.#{form}", job, token, *values) }
  attempt, checkpoint = call.("held_job($1, $2)").first.values_at("attempts", "checkpoint")
  fail_so = lambda do |text, more, *values|
    call.("fail($1, $2, $3, #{more})", text.delete("\0"), *values)
    raise text
  end
  run = lambda do |list|
    list.scan(STEP) do |kind, value|
      case kind
      when "write"
        File.write(file, %({"job": "#{job}", "attempt": #{attempt}, "checkpoint": ) +
          %(#{checkpoint || "null"}, "wrote": #{value}}\n), mode: "a")
      when "wait", "spin" then sleep value.to_f
      when "until" then sleep 0.02 until File.exist?("#{file}.#{JSON.parse(value)}")
      when "progress" then call.("progress($1, $2, fraction => $3)", value)
      when "checkpoint" then call.("progress($1, $2, checkpoint => $3)", value)
      when "result" then result = value
      when "add" then ask.("SELECT FROM pulse.add_job('act', $1)", value)
      when "fail" then raise JSON.parse(value)
      when "garble" then raise [JSON.parse(value)].pack("H*")
      when "fail_for_good" then fail_so.(JSON.parse(value), "false")
      when "rest" then fail_so.("not all was done", "payload => $4", value)
      when "snooze"
        call.("snooze($1, $2, $3 * interval '1 s')", value)
        raise "snoozed"
      when "exit" then exit! Integer(value)
      when "signal" then Process.kill(JSON.parse(value), Process.pid)
      when "once"
        begin
          File.open("#{file}.ran.#{job}", File::CREAT | File::EXCL).close
        rescue Errno::EEXIST
          next
        end
        run.(value)
      end
    end
  end
  run.(steps)
  result
end

text = File.read("#{__dir__}/../../../worker/examples/short_jobs_worker.rb")
{
  "'{checksum}'" => "'{act}'",
  'JSON.parse(payload).fetch("path")' => "payload",
  "Digest::SHA256.file(path).hexdigest" => "act(ask, job, token, path)",
  "WITH r AS (INSERT INTO checksum VALUES ($1, $3) RETURNING 1)\n" => "",
  "SELECT pulse.complete($1, $2) FROM r" => "SELECT pulse.complete($1, $2, $3)",
}.each do |old, new|
  raise "the example has #{old} not once" if text.scan(old).size != 1
  text = text.sub(old) { new }
end
eval(text)
