# A backlog that grows for fifteen minutes is a finding of doctor(): sweeps take a reading a minute.
# A backlog that is steady, that shrinks, that came at once, that waits for its time or behind a
# pause is none.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Depths;
use Pulse::Server;
use Pulse::Session;

# No sweep comes between those of the test, whose clock is ahead.
my $node = start_server('main', settings => \%PATIENT);
my $depths = Pulse::Depths->new($node);
my $session = Pulse::Session->new($node);
my $minute = 0;

# A minute passes, in which this happens, and then a sweep comes.
sub sweep_after {
    my ($statements) = @_;
    $minute++;
    $session->query("SET pulse.clock_offset = '$minute min'; $statements; "
          . 'SELECT count(*) FROM pulse.sweep()');
    return;
}

sub adds {
    my ($count, $columns, $values) = @_;
    return "INSERT INTO pulse.job (identifier, $columns) SELECT 'slow', $values"
      . " FROM generate_series(1, $count)";
}

# So many due jobs wait, minute by minute; nothing of before counts.
sub after_backlogs {
    my (@backlogs) = @_;
    $minute += 60;
    $session->query('DELETE FROM pulse.job');
    my $there = 0;
    for my $jobs (@backlogs) {
        sweep_after($jobs > $there ? adds($jobs - $there, 'run_at', 'pulse.now()')
            : 'DELETE FROM pulse.job WHERE id IN (SELECT id FROM pulse.job LIMIT '
              . ($there - $jobs) . ')');
        $there = $jobs;
    }
    return found();
}

# The same happens for so many minutes.
sub after_minutes {
    my ($minutes, $statements) = @_;
    $minute += 60;
    sweep_after($statements) for 1 .. $minutes;
    return found();
}

sub found {
    return $session->query(
        q{SELECT severity, detail FROM pulse.doctor() WHERE finding = 'backlog grows'});
}

sub readings { return $session->query('SELECT count(*) FROM pulse_internal.backlog()') }

$depths->become_exact;

subtest 'a backlog that grows' => sub {
    my $grown = qr/^warning\|.* for 15 minutes: from 100 at \S+ \S+ to 1700[.]$/;
    like(after_backlogs(map { 100 * $_ } 1 .. 17), $grown, 'is told');
    my $before = readings();
    $session->query('SELECT count(*) FROM pulse.sweep()');
    is(readings(), $before, 'a minute has one reading');
    sweep_after('SELECT 1') for 1 .. 12;
    is(found(), '', 'and told no more once it grows no more');
    is(readings(), 20, 'of which twenty are kept');
};

my %silent = (
    'is steady' => [ map { 1000 + 40 * ($_ % 3) } 1 .. 17 ],
    'shrinks' => [ map { 2000 - 100 * $_ } 1 .. 17 ],
    'came at once' => [ (10) x 9, map { 5000 - 20 * $_ } 1 .. 8 ],
    'grows by few jobs' => [ map { 5 * $_ } 1 .. 17 ],
    'grows by a small part' => [ map { 5000 + 20 * $_ } 1 .. 17 ],
    'has grown for twelve minutes' => [ map { 100 * $_ } 1 .. 13 ],
);
for my $backlog (sort keys %silent) {
    is(after_backlogs(@{ $silent{$backlog} }), '', "a backlog that $backlog is no trouble");
}

subtest 'jobs that are not due' => sub {
    $session->query('DELETE FROM pulse.job; '
          . adds(300, 'run_at', q{pulse.now() - interval '1 h'}));
    is(after_minutes(17, adds(100, 'run_at', q{pulse.now() + interval '1 d'})), '',
        'are no backlog, also beside due ones of their task');
    like(after_minutes(17, adds(600, 'run_at', 'pulse.now()')), qr/^warning/,
        'the due ones are, beside those');
};

subtest 'jobs behind a queue' => sub {
    $session->query('DELETE FROM pulse.job');
    $session->query(q{SELECT queue_name FROM pulse.pause_queue('held')});
    is(after_minutes(17, adds(50, 'queue_name, state', q{'held', 'parked'})), '',
        'are no backlog where it is paused');
    is(after_minutes(17, adds(300, 'queue_name, state', q{'held', 'parked'})), '',
        'however many they are');
    $session->query('DELETE FROM pulse.job');
    like(after_minutes(17, adds(50, 'queue_name, state', q{'narrow', 'parked'})), qr/^warning/,
        'few are one where it is full');
    like(after_minutes(17, adds(300, 'queue_name, state', q{'narrow', 'parked'})), qr/^warning/,
        'and so are many');
};

subtest 'after a start' => sub {
    $session->quit;
    $node->restart;
    $session = Pulse::Session->new($node);
    my $may_read = 'SELECT pulse_internal.begin_backlog_reading()';
    is(value($node, $may_read), 'f', 'a server that has not counted reads nothing');
    $session->query('SELECT count(*) FROM pulse.doctor()');
    wait_until($node, $may_read, 'doctor() asks for the first count');
    sweep_after('SELECT 1');
    is(readings(), 1, 'and a sweep reads');
    is(found(), '', 'of which nothing is told yet');
};

done_testing();
