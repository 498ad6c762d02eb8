# P12 at length: a year of due times is settled by two tickers and two workers while workers and the
# server are killed and a standby is promoted. What the tasks wrote down is compared with the due
# times that SQL's own calendar gives. PULSE_SCHEDULES says how many schedules (20).
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Program;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

use constant { KILLS => 3, WORKERS => 2 };
my $schedules = $ENV{PULSE_SCHEDULES} // 20;

my $primary = start_server('primary', streaming => 1, settings => { %QUICK });
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;

my $tasks = Pulse::Tasks->new(note => <<'SH');
[[ $(cat) =~ \"name\"\ ?:\ ?\"(s[0-9]+)\" ]]
tell "${BASH_REMATCH[1]}@$PULSE_SCHEDULED_FOR"
SH
my ($host, $port) =
  map { my $part = $_; join ',', map { $_->$part } $primary, $standby } qw(host port);
my $started = 0;

sub start_worker {
    return Pulse::Worker->start_registered($primary, 'worker-' . ++$started, tasks => $tasks,
        concurrency => 4, host => $host, port => $port);
}

sub start_ticker {
    my ($name) = @_;
    return Pulse::Program->start($name, [
            'bash', '-c', 'while :; do psql -Xqc "SELECT pulse.tick()" "$0" 2>&1; done',
            "host=$host port=$port dbname=postgres target_session_attrs=read-write" ]);
}

# Each schedule begins a year ago: every third by elapsed time, others at a fixed hour of some days,
# which no zone leaves out or repeats. A fourth of them each makes up for one or for no due time.
value($primary, qq{
    CREATE TABLE plan AS
    SELECT n, 's' || n AS name, n % 60 AS minute, 5 + n % 18 AS hour,
           (ARRAY['*', '1-5', '0', '3,6'])[1 + n % 4] AS days,
           (ARRAY['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata'])[1 + n / 4 % 4]
             AS zone,
           CASE WHEN n % 3 = 0 THEN make_interval(hours => 7 + n % 90) END AS every,
           CASE n % 8 WHEN 1 THEN 'once' WHEN 2 THEN 'skip' ELSE 'all' END AS missed
      FROM generate_series(1, $schedules) AS n;
    SELECT pulse.set_task('note', keep_completed => '1 day', max_crashes => 100, backoff => 'none',
                          max_attempts => 100);
    SELECT count(pulse.schedule(name, 'note', every => every, missed => missed,
        missed_for => '2 years', time_zone => zone, payload => json_build_object('name', name),
        cron => CASE WHEN every IS NULL THEN format('%s %s * * %s', minute, hour, days) END))
      FROM plan;
    UPDATE pulse.schedule AS s SET anchor = s.anchor - interval '8760 h';
    UPDATE pulse.schedule AS s
       SET next_due = pulse_internal.due_after(s, pulse.now() - interval '8760 h');
    CREATE TABLE since AS SELECT name, anchor, now() - interval '8760 h' AS moment
      FROM pulse.schedule});

my @programs = map { start_ticker("ticker$_") } 1, 2;
my @workers = map { start_worker() } 1 .. WORKERS;

sub is_due_time { return $_[0] =~ /^s\d+@/ }
sub told { return scalar grep { is_due_time($_) } $tasks->lines->lines }

for my $kill (1 .. KILLS) {
    $tasks->lines->wait_for('some due times', \&is_due_time, count => told() + $schedules);
    shift(@workers)->kill;
    kill_server($primary);
    $primary->start;
    push @workers, start_worker();
}

$primary->wait_for_catchup($standby);
$primary->stop('fast');
$standby->promote;
wait_until($standby, q{SELECT bool_and(next_due > now()) AND (SELECT count(*) = 0 FROM pulse.job)
    FROM pulse.schedule}, 'all is settled and done');
$_->kill for @programs;
# Each line: the schedule and the due time, the job and its attempt.
sub written {
    my %jobs;
    for (grep { is_due_time($_) } $tasks->lines->lines) {
        my ($due_time, undef, $job) = split / /;
        $jobs{$due_time}{$job} = 1;
    }
    return \%jobs;
}

# The due times that the plan gives, by the calendar of SQL alone.
sub planned {
    my ($missed) = @_;
    return split /\n/, value($standby, qq{
        SELECT p.name || '\@' || (to_json(due AT TIME ZONE 'UTC') #>> '{}') || '+00:00'
          FROM plan AS p JOIN since USING (name) JOIN pulse.schedule AS s USING (name)
         CROSS JOIN LATERAL (
           SELECT since.anchor + n * p.every FROM generate_series(0, 3000) AS n
            WHERE p.every IS NOT NULL
           UNION ALL
           SELECT (day + make_time(hour, minute, 0)) AT TIME ZONE zone
             FROM generate_series((moment - interval '2 days')::date::timestamp,
                                  now()::timestamp + interval '2 days', '1 day') AS d (day)
            WHERE p.every IS NULL AND (days = '*' OR extract(dow FROM day)::int = ANY (
                 CASE days WHEN '1-5' THEN ARRAY[1, 2, 3, 4, 5] WHEN '0' THEN ARRAY[0]
                   ELSE ARRAY[3, 6] END))) AS times (due)
         WHERE due > moment AND due <= s.last_due AND (p.missed = 'all') = $missed
         ORDER BY 1});
}

my $written = written();
my %expected = map { $_ => 1 } planned('true');
my %possible = (%expected, map { $_ => 1 } planned('false'));
is_deeply([ grep { !$written->{$_} } sort keys %expected ], [], 'each due time has run');
is_deeply([ grep { !$possible{$_} } sort keys %$written ], [], 'and nothing else');
is_deeply([ grep { keys %{ $written->{$_} } > 1 } sort keys %$written ], [], 'by one job each');
cmp_ok(scalar keys %expected, '>', 20 * $schedules, scalar(keys %expected) . ' due times');
for (@workers) {
    $_->signal('TERM');
    $_->wait_exit;
}
expect_healthy($standby);
done_testing();
