# P12 at length: two tickers, whose clocks walk through a year and step an hour forth and back,
# settle its due times, while workers and the server are killed and a standby is promoted. What the
# tasks wrote down is compared with the due times that SQL's own calendar gives. PULSE_SCHEDULES
# says how many schedules (24; those from the 17th on have a few due times a year), PULSE_STEPS in
# how many steps the clocks go (20).
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Program;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

use constant { KILLS => 3, WORKERS => 2, YEAR_S => 365 * 24 * 3600, HOUR_S => 3600 };
my $schedules = $ENV{PULSE_SCHEDULES} // 24;
my $steps = $ENV{PULSE_STEPS} // 20;

# Only the tickers sweep: they alone see the time of the year that is simulated.
my $primary = start_server('primary', streaming => 1,
    settings => { %QUICK, 'pulse.sweep_interval' => -1 });
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;

my $tasks = Pulse::Tasks->new(note => <<'SH');
read -r -d '' text
[[ $text =~ \"name\"\ ?:\ ?\"(s[0-9]+)\" ]]
tell "${BASH_REMATCH[1]}@$PULSE_SCHEDULED_FOR"
SH
my ($host, $port) =
  map { my $part = $_; join ',', map { $_->$part } $primary, $standby } qw(host port);
my $started = 0;

sub start_worker {
    return Pulse::Worker->start_registered($primary, 'worker-' . ++$started, tasks => $tasks,
        concurrency => 4, host => $host, port => $port);
}

# The clock of the year is behind the server's by the seconds in this file. A ticker's is, each
# time, an hour behind it, the same, or, but in the end, an hour ahead.
my $clock_file = $tasks->folder . '/../clock';

sub set_clock {
    my ($behind_s) = @_;
    open my $file, '>', "$clock_file.new" or die "$clock_file: $!";
    print $file -$behind_s, ' ', $behind_s > 0 ? 3 : 2, "\n";
    close $file or die "$clock_file: $!";
    rename "$clock_file.new", $clock_file or die "$clock_file: $!";
    return;
}

my $ticks = <<'SH';
while read -r clock steps <"$1"; do
    PGOPTIONS="-c pulse.clock_offset=$((clock + (RANDOM % steps - 1) * 3600))s" \
        psql -Xqc 'SELECT pulse.sweep()' "$0" 2>&1
done
SH

sub start_ticker {
    my ($name) = @_;
    return Pulse::Program->start($name, [
            'bash', '-c', $ticks,
            "host=$host port=$port dbname=postgres target_session_attrs=read-write", $clock_file ]);
}

# Each schedule begins a year ago. Of the first sixteen every third is by elapsed time, the others
# are at a fixed hour of some days; of the rest half are yearly, an eighth by elapsed time, and the
# others quarterly or monthly. No zone leaves out or repeats an hour of them. A fourth of all make
# up for one or for no due time.
set_clock(YEAR_S);
value($primary, sprintf q{
    SET pulse.clock_offset = '-%d s';
    CREATE TABLE plan AS
    SELECT n, 's' || n AS name, n %% 60 AS minute, 5 + n / 7 %% 18 AS hour,
           CASE WHEN n <= 16 THEN (ARRAY['*', '1-5', '0', '3,6'])[1 + n %% 4] ELSE '*' END AS days,
           CASE WHEN n > 16 THEN 1 + n %% 28 END AS day_of_month,
           CASE WHEN n <= 16 THEN NULL WHEN n %% 8 < 4 THEN ARRAY[1 + n / 8 %% 12]
                WHEN n %% 8 < 6 THEN ARRAY[2, 5, 8, 11] END AS months,
           (ARRAY['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata'])[1 + n / 4 %% 4]
             AS zone,
           CASE WHEN n <= 16 AND n %% 3 = 0 THEN make_interval(hours => 7 + n %% 90)
                WHEN n > 16 AND n %% 8 = 7 THEN make_interval(hours => 700 + n %% 997) END AS every,
           CASE n / 3 %% 8 WHEN 1 THEN 'once' WHEN 2 THEN 'skip' ELSE 'all' END AS missed
      FROM generate_series(1, %d) AS n;
    SELECT pulse.set_task('note', keep_completed => '1 day', max_crashes => 100, backoff => 'none',
                          max_attempts => 100);
    SELECT count(pulse.schedule(name, 'note', every => every, missed => missed,
        missed_for => '2 years', time_zone => zone, payload => json_build_object('name', name),
        cron => CASE WHEN every IS NULL THEN format('%%s %%s %%s %%s %%s', minute, hour,
          coalesce(day_of_month::text, '*'), coalesce(array_to_string(months, ','), '*'),
          days) END))
      FROM plan;
    CREATE TABLE since AS SELECT name, anchor, pulse.now() AS moment
      FROM pulse.schedule}, YEAR_S, $schedules);

my @programs = map { start_ticker("ticker$_") } 1, 2;
my @workers = map { start_worker() } 1 .. WORKERS;

sub is_due_time { return $_[0] =~ /^s\d+@/ }

# Kills a worker and the whole server.
sub kill_both {
    shift(@workers)->kill;
    kill_server($primary);
    $primary->start;
    push @workers, start_worker();
    return;
}

for my $step (1 .. $steps) {
    my $behind_s = int(YEAR_S * (1 - $step / $steps));
    set_clock($behind_s);
    kill_both() if $step % int($steps / (KILLS + 1)) == 0 && $step < $steps;
    wait_until($primary, sprintf(q{SELECT NOT EXISTS (SELECT FROM pulse.schedule
        WHERE next_due <= now() - interval '%d s')}, $behind_s + HOUR_S), "step $step is settled");
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
            WHERE p.every IS NULL
              AND (day_of_month IS NULL OR extract(day FROM day) = day_of_month)
              AND (months IS NULL OR extract(month FROM day)::int = ANY (months))
              AND (days = '*' OR extract(dow FROM day)::int = ANY (
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
cmp_ok(scalar keys %expected, '>', 2 * $schedules, scalar(keys %expected) . ' due times');
for (@workers) {
    $_->signal('TERM');
    $_->wait_exit;
}
expect_healthy($standby);
done_testing();
