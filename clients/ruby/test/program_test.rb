# frozen_string_literal: true

# The lines of the program mode, spoken to a program of this test over a socket.
require_relative 'helper'
require 'socket'

# A program whose handlers say what they got.
class ProgramTest < LibraryTest
  SOURCE = <<~RUBY
    require 'pg_pulse'
    class Echo
      include PgPulse::Task
      def perform(payload) = { payload:, id: job.id, token: job.token, database: job.database }
    end
    class Say
      include PgPulse::Task
      def perform(texts) = texts.each { |text| print text } && 'said'
    end
    PgPulse.work(takes: 7, name: 'test')
    begin
      PgPulse.work(command: 'again')
    rescue PgPulse::NotStarted => e
      puts e.message
    end
  RUBY

  def start(source = SOURCE)
    @socket, theirs = UNIXSocket.pair
    output, written = IO.pipe
    pid = spawn({ 'PULSE_FD' => '3' }, RbConfig.ruby, '-I', "#{__dir__}/../lib", '-e', source,
                3 => theirs, out: written)
    [theirs, written].each(&:close)
    @finish = lambda do
      @socket.close_write
      Process.wait(pid)
      [$CHILD_STATUS.exitstatus, output.read]
    end
  end

  def next_line = JSON.parse(@socket.gets.force_encoding(Encoding::UTF_8))
  def give(message) = @socket.puts(JSON.generate(message))

  test('the program speaks first, and gives each id back as it came') do
    start
    assert_equal({ 'hello' => { 'protocol' => 1, 'takes' => 7, 'name' => 'test',
                                'tasks' => { 'echo' => {}, 'say' => {} } } }, next_line)
    job = { id: '9007199254740995', token: '9223372036854775807', database: 'shop' }
    give({ id: 'shop:9007199254740995', task: 'echo', payload: [1], job: })
    assert_equal({ 'id' => 'shop:9007199254740995',
                   'result' => { 'payload' => [1], **job.transform_keys(&:to_s) } }, next_line)
    assert_match(/\Aa pulse-worker runs jobs in this process already/, @finish.call.last)
  end

  test('lines that come in pieces, and several at once') do
    start
    next_line
    payload = "é#{'x' * 300_000}"
    line = ->(id) { JSON.generate({ id:, task: 'echo', payload:, job: { id: } }) }
    bytes = %w[1 2 3].map { |id| "#{line[id]}\n" }.join.b
    cut = bytes.index("\xC3".b) + 1 # within a character
    writer = Thread.new { [bytes[0...cut], bytes[cut..]].each { |part| @socket.write(part) } }
    assert_equal %w[1 2 3], Array.new(3) { next_line['id'] }.sort
    writer.join
    assert_equal 0, @finish.call.first
  end

  test('what a handler prints comes line by line before its answer') do
    start
    next_line
    give({ id: '1', task: 'say', payload: ['tw', "o\nlines\n\nof", ' text'], job: { id: '1' } })
    said = [next_line]
    said << next_line until said.last.key?('result')
    assert_equal ['two', 'lines', '', 'of text'], said.filter_map { |line| line['log'] }
    assert_equal({ 'id' => '1', 'result' => 'said' }, said.last)
    @finish.call
  end
end
