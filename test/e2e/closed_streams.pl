# Who is started without standard streams prints nothing into a connection or a file, and says by
# the exit code that what was to be printed is lost.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Program;
use Pulse::Server;
use Pulse::Worker;

use constant { DONE => 0, OUTPUT_LOST => 74 };

my $node = start_server('main', settings => \%PATIENT);
my $database = 'host=' . $node->host . ' port=' . $node->port . ' dbname=postgres';
my $job = value($node, q{SELECT id FROM pulse.add_job('kept', '{}')});
value($node, q{SELECT pulse.set_queue('letters', concurrency => 2)});
value($node, q{SELECT pulse.schedule('nightly', 'kept', cron => '0 3 * * *')});

# Runs it under a shell that closes streams; the exit code, 124 where it does not end.
sub status_of {
    my ($closed, @command) = @_;
    my $limit = $PostgreSQL::Test::Utils::timeout_default;
    system 'timeout', $limit, 'sh', '-c', "exec \"\$@\" $closed", 'sh', @command;
    return $? & 127 ? 'signal ' . ($? & 127) : $? >> 8;
}

sub misread {
    return scalar grep { /invalid frontend message type|unexpected message type/ }
      split /\n/, slurp_file($node->logfile);
}

# Each command that prints; those that ask are answered.
my @commands = ([qw(overview)], [qw(jobs)], [ 'job', $job ], [qw(queues)],
    [qw(queues pause letters)], [qw(queues limit letters --concurrency 3)], [qw(tasks)],
    [qw(workers)], [qw(schedules)], [qw(schedules next nightly)], [qw(flows)], [qw(operations)],
    [qw(add kept {})], [ 'reschedule', $job, qw(--priority 1 --yes) ], [qw(doctor)], [qw(tail)],
    [qw(token ann postgres)]);

for my $closed ('>&-', '<&- >&- 2>&-', '>/dev/full') {
    subtest "pulse $closed" => sub {
        for my $command (@commands) {
            next if $closed eq '>/dev/full' && $command->[0] eq 'tail';
            my $quiet = $closed =~ /2>/ ? '' : ' 2>/dev/null';
            is(status_of("$closed$quiet", 'pulse', '-d', $database, @$command), OUTPUT_LOST,
                $command->[0]);
            is(status_of("$closed$quiet", 'pulse', '--json', '-d', $database, @$command),
                OUTPUT_LOST, "$command->[0] in JSON")
              if $command->[0] ne 'token';
        }
        is(status_of($closed, 'pulse', $_), OUTPUT_LOST, $_) for qw(--help --version);
        is(misread(), 0, 'the server got nothing of what was to be printed');
    };
}

subtest 'what is told of output that is lost' => sub {
    my $limit = $PostgreSQL::Test::Utils::timeout_default;
    for my $command ([qw(jobs)], [qw(--help)], [qw(--json jobs)], [qw(overview)]) {
        my ($out, $said) = run_command([ 'timeout', $limit, 'sh', '-c', 'exec "$@" >/dev/full',
            'sh', 'pulse', '-d', $database, @$command ]);
        like($said, qr/^pulse: standard output took not all(?:: No space left on device)?$/,
            "@$command: the reason, where it is known");
    }
};

subtest 'a closed standard error leaves the output alone' => sub {
    is(status_of('2>&- >/dev/null', 'pulse', '-d', $database, 'jobs'), DONE, 'which is whole');
};

subtest 'pulse serve without any stream' => sub {
    my $port = PostgreSQL::Test::Cluster::get_free_port();
    my $serve = Pulse::Program->start('serve', [ 'sh', '-c', 'exec "$@" <&- >&- 2>&-', 'sh',
        'pulse', '-d', $database, 'serve', '--listen', "127.0.0.1:$port" ]);
    my $page = '';
    Pulse::Lines::pause()
      until ($page = `curl -s -m 5 http://127.0.0.1:$port/jobs`) || $serve->lines->lines;
    like($page, qr/kept/, 'it serves');
    my $pid = $serve->pid;
    is_deeply([ map { readlink "/proc/$pid/fd/$_" } 0 .. 2 ], [ ('/dev/null') x 3 ],
        'and no connection of its own is a standard stream');
    $serve->signal('TERM');
    is($serve->wait_exit, DONE, 'it ends as told: its output is what it has served');
    is(misread(), 0, 'the server got nothing of its log');
};

subtest 'pulse-worker without any stream' => sub {
    value($node, q{CREATE FUNCTION public.kept(json) RETURNS json LANGUAGE sql AS 'SELECT $1';
        SELECT pulse.set_task('kept', handler => 'public.kept(json)')});
    my $worker = Pulse::Program->start('worker', [ 'sh', '-c', 'exec "$@" <&- >&- 2>&-', 'sh',
        'pulse-worker', '--database', $database, '--log-level', 'debug' ]);
    wait_until($node, qq{SELECT NOT EXISTS (SELECT FROM pulse.job WHERE id = $job)}, 'it works');
    $worker->signal('TERM');
    is($worker->wait_exit, DONE, 'it ends as told');
    is(misread(), 0, 'the server got nothing of its log');
};

done_testing();
