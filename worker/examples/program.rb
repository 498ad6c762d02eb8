#!/usr/bin/env ruby
# Greets, ten jobs at a time in threads: pulse-worker --program worker/examples/program.rb
require 'json'
require 'socket'

HANDLERS = {
  'greet' => ->(payload) { { greeted: payload.fetch('name') } }
}.freeze

WORKER = Socket.for_fd(Integer(ENV.fetch('PULSE_FD')))
LOCK = Mutex.new

def say(message)
  LOCK.synchronize { WORKER.write("#{JSON.generate(message)}\n") }
end

def run(message)
  say(id: message['id'], result: HANDLERS.fetch(message['task']).call(message['payload']))
rescue StandardError => e
  say(id: message['id'], error: e.full_message(highlight: false))
end

say(hello: { protocol: 1, takes: 10, tasks: HANDLERS.transform_values { {} } })
threads = []
WORKER.each_line do |line|
  message = JSON.parse(line)
  threads << Thread.new { run(message) } unless message.key?('cancel')
  threads.select!(&:alive?)
end
threads.each(&:join)
