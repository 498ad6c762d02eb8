# Each command of `pulse` and each page of `pulse serve` beside many jobs: how long an answer takes
# and how many buffers its statements read; and what a server pays for whoever watches.
package Console;

use strict;
use warnings;
use Getopt::Long qw(GetOptionsFromArray);
use HTTP::Tiny ();
use IO::Socket::INET ();
use JSON::PP ();
use List::Util qw(max);
use Time::HiRes qw(time);

use Bench::Measure;
use Bench::Server;

use constant { SERVER => 'bench-console', MAX_MS => 300, MAX_BUFFERS => 5_000, MAX_PART => 2 };
# No sweep moves a job meanwhile; workers stay alive without heartbeats.
my @settings = ('shared_preload_libraries=pg_pulse,pg_stat_statements',
    qw(max_wal_size=8GB shared_buffers=1GB maintenance_work_mem=512MB autovacuum=off
      checkpoint_timeout=1h pulse.sweep_interval=-1 pulse.heartbeat_interval=6h
      pulse.sweep_threshold=20h));
my ($at, $option, %given);

sub read_options {
    my @arguments = @_;
    my %option = (jobs => 5_000_000, repeats => 5, seconds => 60, filled => 0);
    GetOptionsFromArray(\@arguments, \%option, qw(jobs=i repeats=i seconds=i filled)) or return;
    return if @arguments || grep { $_ ne 'filled' && $option{$_} < 1 } keys %option;
    return \%option;
}

# --- what is asked --------------------------------------------------------------------------------

# Ids and names that commands and pages are asked for.
sub read_given {
    my %sql = (
        ready => q{SELECT min(id) FROM pulse.job WHERE identifier = 'task 7'
                    AND index_lane = 'o' AND run_at <= now()},
        last => q{SELECT id FROM pulse.job WHERE index_lane = 'o' AND run_at <= now()
                   ORDER BY identifier DESC, priority DESC, run_at DESC, id DESC LIMIT 1},
        parked => q{SELECT max(id) FROM pulse.job WHERE queue_name = 'long'},
        running => q{SELECT max(id) FROM pulse.job WHERE state = 'running'},
        failed => q{SELECT max(id) FROM pulse.finished_job WHERE state = 'failed'},
        middle => 'SELECT max(id) / 2 FROM pulse.job',
        flow => 'SELECT max(id) FROM pulse.flow',
        small_flow => 'SELECT min(id) FROM pulse.flow',
        operation => 'SELECT max(id) FROM pulse.operation');
    return map { ($_ => Bench::Server::sql('postgres', $sql{$_})) } keys %sql;
}

sub commands {
    return (
        ['overview'], ['jobs'], ['jobs', '--before', $given{middle}],
        (map { ['jobs', '--state', $_] } qw(ready parked running failed quarantined completed)),
        ['jobs', '--task', 'task 7'], ['jobs', '--task', 'none'], ['jobs', '--queue', 'long'],
        ['jobs', '--queue', 'queue 7'], ['jobs', '--queue', 'none'], ['jobs', '--key', 'key 100'],
        ['jobs', '--key', 'none'], ['jobs', '--error', 'disk 123 '], ['jobs', '--error', 'none'],
        ['jobs', '--older', '1h'], ['jobs', '--newer', '1h'],
        ['jobs', '--task', 'task 7', '--state', 'failed'],
        (map { ['job', $given{$_}] } qw(ready last parked running failed)),
        ['add', 'added'], ['tasks'], ['queues'], ['workers'], ['workers', '--all'], ['schedules'],
        ['schedules', 'next', 'schedule 7'], ['flows'], ['operations'], ['doctor'],
        # These are asked and not answered with yes.
        ['retry', '--state', 'failed'], ['retry', '--error', 'disk 123 '], ['cancel', '--all'],
        ['cancel', '--task', 'none'], ['cancel', $given{ready}],
        ['reschedule', '--queue', 'long', '--priority', 1], ['fail', '--key', 'none'],
        ['undo', $given{operation}]);
}

sub pages {
    return (
        '/', '/jobs', "/jobs?before=$given{middle}",
        (map { "/jobs?state=$_" } qw(ready parked running failed quarantined completed)),
        '/jobs?task=task+7', '/jobs?task=none', '/jobs?queue=long', '/jobs?queue=none',
        '/jobs?key=key+100', '/jobs?error=disk+123+', '/jobs?error=none', '/failed',
        (map { "/jobs/$given{$_}" } qw(ready last parked running failed)),
        '/queues', '/queue?name=long', '/tasks', '/task?name=task+7', '/workers', '/running',
        '/schedules', '/schedule?name=schedule+7',
        '/flows', "/flows/$given{flow}", "/flows/$given{small_flow}", '/operations',
        "/operations/$given{operation}", "/operations/$given{operation}/undo",
        '/operations/new?action=retry&state=failed', '/operations/new?action=cancel',
        '/operations/new?action=cancel&task=none', "/operations/new?action=fail&id=$given{ready}",
        '/operations/new?action=reschedule&queue=long', '/queues/pause?queue=long',
        '/queues/limit?queue=long', '/schedules/run?schedule=schedule+7', '/workers/drain?worker=1',
        "/flows/cancel?flow=$given{flow}", '/doctor', '/metrics', "/v1/jobs/$given{ready}",
        '/v1/openapi.json', '/healthz');
}

# --- measuring ------------------------------------------------------------------------------------

# Of all statements since the last look, this one's left out.
sub take_buffers {
    return Bench::Server::sql('postgres', q{
        SELECT coalesce(sum(shared_blks_hit + shared_blks_read), 0)::bigint
          FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%';
        DO $$BEGIN PERFORM pg_stat_statements_reset(); END$$});
}

# Asks several times, after a first time that warms up. A command has a session of its own, which
# reads the catalogue each time; a page has one that `pulse serve` keeps.
sub measure_one {
    my ($name, $ask) = @_;
    my (@ms, @buffers);
    for (0 .. $option->{repeats}) {
        take_buffers();
        my $start = time;
        $ask->();
        push @ms, 1000 * (time - $start);
        push @buffers, take_buffers();
    }
    my $first = shift @ms;
    my $first_buffers = shift @buffers;
    my $row = { name => $name, first => $first, ms => Bench::Measure::median(@ms),
                longest => max(@ms), first_buffers => $first_buffers, buffers => max(@buffers) };
    $row->{is_over} = $row->{ms} > MAX_MS || $row->{buffers} > MAX_BUFFERS;
    printf "%-52s %8.1f %8.1f %8.1f %9d %9d%s\n",
      @{$row}{qw(name first ms longest first_buffers buffers)},
      $row->{is_over} ? '  over' : '';
    return $row;
}

# What was asked a question without a terminal ends with 1, as a doctor does with findings.
sub run_command {
    my @command = ('pulse', '--no-pager', '-d', "user=bench_operator dbname=postgres", @_);
    my $pid = fork // die "bench: fork: $!\n";
    if ($pid == 0) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', '/dev/null';
        open STDERR, '>>', $at->{log};
        exec @command or exit 127;
    }
    waitpid $pid, 0;
    die "bench: @command ended with $?; see $at->{log}\n" if $? != 0 && $? >> 8 != 1;
    return;
}

# `pulse serve` with a token of an operator, and the cookie of a browser that signed in with it.
sub start_serve {
    my $port = 20_000 + $$ % 20_000;
    my $tokens = "$at->{build}/console.tokens";
    my $said = Bench::Server::command("pulse token bench bench_operator 2>&1 >'$tokens'");
    my ($secret) = $said =~ /: (\S+)$/;
    chmod 0600, $tokens;
    my $pid = fork // die "bench: fork: $!\n";
    if ($pid == 0) {
        open STDERR, '>>', $at->{log};
        exec 'pulse', '-d', 'dbname=postgres', 'serve', '--listen', "127.0.0.1:$port", '--tokens',
          $tokens or exit 127;
    }
    my $http = HTTP::Tiny->new(max_redirect => 0, keep_alive => 0, timeout => 60);
    my $serve = { pid => $pid, port => $port, url => "http://127.0.0.1:$port", http => $http };
    until ($http->get("$serve->{url}/healthz")->{success}) {
        die "bench: pulse serve does not run; see $at->{log}\n" if waitpid($pid, 1) != 0;
        select undef, undef, undef, 0.1;
    }
    my $answer = $http->post_form("$serve->{url}/login", { token => $secret });
    ($serve->{cookie}) = ($answer->{headers}{'set-cookie'} // '') =~ /^([^;]+)/
      or die "bench: no sign-in: $answer->{status}\n";
    return $serve;
}

sub stop_serve {
    my ($serve) = @_;
    kill 'TERM', $serve->{pid};
    waitpid $serve->{pid}, 0;
    return;
}

sub get_page {
    my ($serve, $path) = @_;
    my $answer =
      $serve->{http}->get("$serve->{url}$path", { headers => { Cookie => $serve->{cookie} } });
    die "bench: $path: $answer->{status} $answer->{content}\n" if $answer->{status} ne '200';
    return;
}

# --- watching -------------------------------------------------------------------------------------

# Somebody who has a page open.
sub open_page {
    my ($serve, $path) = @_;
    my $pid = fork // die "bench: fork: $!\n";
    return $pid if $pid != 0;
    my $socket = IO::Socket::INET->new("127.0.0.1:$serve->{port}") or exit 1;
    print {$socket} "GET $path HTTP/1.1\r\nHost: 127.0.0.1:$serve->{port}\r\n"
      . "Cookie: $serve->{cookie}\r\n\r\n";
    1 while sysread $socket, my $said, 65_536;
    exit 0;
}

sub open_top {
    my $pid = fork // die "bench: fork: $!\n";
    return $pid if $pid != 0;
    open STDIN, '<', '/dev/null';
    open STDOUT, '>', '/dev/null';
    local $ENV{TERM} = 'xterm';
    # script gives it a terminal.
    exec 'script', '-qec', "pulse -d 'user=bench_operator dbname=postgres' top", '/dev/null'
      or exit 127;
}

# Processor time of the server in percent of a core while these watch.
sub watched {
    my ($name, @watchers) = @_;
    sleep 3;
    my ($start, $before) = (time, Bench::Server::processor_seconds());
    select undef, undef, undef, $option->{seconds};
    my $part = 100 * (Bench::Server::processor_seconds() - $before) / (time - $start);
    my $is_over = $name =~ / and / && $part > MAX_PART;
    printf "%-52s %8.2f %% of a core%s\n", $name, $part, $is_over ? '  over' : '';
    kill 'TERM', @watchers;
    waitpid $_, 0 for @watchers;
    return { name => $name, part => $part, is_over => $is_over };
}

sub measure_watching {
    my ($serve) = @_;
    return (
        watched('nobody watches'),
        watched('pulse top', open_top()),
        watched('an open overview', open_page($serve, '/live/overview')),
        watched('pulse top and an open overview', open_top(), open_page($serve, '/live/overview')));
}

sub fill {
    printf "filling with %d jobs\n", $option->{jobs};
    Bench::Server::command("psql -Xq -v ON_ERROR_STOP=1 -v jobs=$option->{jobs} -o /dev/null"
          . " -f '$at->{here}/console/fill.sql'");
    return;
}

sub measure {
    fill() if !$option->{filled};
    %given = read_given();
    my @rows;
    my $title = sprintf "%-52s %8s %8s %8s %9s %9s\n", '', 'first', 'median', 'longest',
      'first', 'buffers';
    print "\n", $title;
    for my $command (commands()) {
        push @rows, measure_one("pulse @$command", sub { run_command(@$command) });
    }
    my $serve = start_serve();
    print "\n", $title;
    push @rows, map { my $path = $_; measure_one($path, sub { get_page($serve, $path) }) } pages();
    print "\n";
    push @rows, measure_watching($serve);
    stop_serve($serve);
    open my $handle, '>', "$at->{build}/console.json" or die "bench: $!\n";
    print {$handle} JSON::PP->new->canonical->pretty->encode(
        { options => $option, rows => \@rows });
    close $handle;
    my @over = grep { $_->{is_over} } @rows;
    printf "\n%d of %d are over %d ms, %d buffers or %d %% of a core\n", scalar @over,
      scalar @rows, MAX_MS, MAX_BUFFERS, MAX_PART;
    return @over ? 2 : 1;
}

sub run {
    ($at, $option) = @_;
    $at = { %$at, log => "$at->{build}/console.log" };
    return measure() - 1 if $option->{filled};
    return Bench::Server::run_with($at, SERVER, \@settings, \&measure) - 1;
}

1;
