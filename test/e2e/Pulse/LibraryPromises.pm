# What the library of each language promises of programs under pulse-worker --program. Each function
# is a subtest; the programs are those of Pulse::LibraryActs, whose task act does what a payload
# says. Pulse::DirectPromises has the direct mode.
package Pulse::LibraryPromises;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use JSON::PP qw(decode_json);
use Test::More;

use Pulse::LibraryActs;
use Pulse::ProgramRun qw(wait_finished of_finished drain);
use Pulse::Server;

our @EXPORT = qw(promise_on returns_results refuses_results refuses_payload survives_payloads
  ends_by_words tells_of_itself prints_with_its_job logs_stacks_whole takes_so_many is_told_to_end
  survives_exit drains_at_sigterm effect_happens_once goes_on_after_its_end);
our @EXPORT_OK = qw(is_cancelled happens_once);

use constant { DRAINED => 0, PRINTERS => 20, LINES => 3, STACKS => 15 };
# What the server takes as a payload, and not each language reads.
use constant HOSTILE => {
    deep => '[' x 2000 . ']' x 2000, digits => '7' x 5000, half => '"\ud800"' };

my $node;
my $once = 'max_attempts => 1';

# The server of all that follows.
sub promise_on {
    ($node) = @_;
    return;
}

# In both modes. For each deed the result, as JSON.
sub returns_results {
    my (%result) = @_;
    subtest 'what a handler returns is the result' => sub {
        my %id = map { $_ => act($_) } sort keys %result;
        for (sort keys %id) {
            is(wait_finished($id{$_}), 'completed|1|0', "$_: the job completes");
            is(of_finished('result', $id{$_}) =~ s/,\s*/, /r, $result{$_}, "$_: with its result");
        }
        my $list = add_job($node, 'list', "'[1, 2, 3]'");
        is(wait_finished($list), 'completed|1|0', 'an array is a payload');
        is(of_finished('result', $list), 3, 'that the handler gets');
    };
    return;
}

# For each deed the error.
sub refuses_results {
    my (%error) = @_;
    $error{'large'} = qr/the answer of act has 2097\d+ bytes, and a line has at most 1048576/;
    $error{'large checkpoint'} = qr/the checkpoint has 2097\d+ bytes/;
    $error{'beyond all'} = qr/progress is a fraction from 0 to 1, and not 50/;
    $error{'snooze circle'} = qr/the checkpoint is no JSON/;
    $error{'large rest'} = qr/the answer of act has 20\d+ bytes/;
    subtest 'a result that is no JSON, or too large, fails its own job' => sub {
        my %id = map { $_ => act($_, options => $once) } sort keys %error;
        for (sort keys %id) {
            is(wait_finished($id{$_}), 'failed|1|0', "$_: the job fails");
            like(of_finished('last_error', $id{$_}), $error{$_}, "$_: and says why");
        }
    };
    return;
}

# In both modes: a payload of the task checked, its error, and a payload that is taken.
sub refuses_payload {
    my ($refused, $error, $taken) = @_;
    subtest 'a payload that the task refuses' => sub {
        my $id = add_job($node, 'checked', "'$refused'");
        is(wait_finished($id), 'failed|1|0', 'fails for good');
        like(of_finished('last_error', $id), $error, 'with the path');
        my $good = add_job($node, 'checked', "'$taken'");
        is(wait_finished($good), 'completed|1|0', 'another payload is taken');
        is(of_finished('result', $good), '"ada"', 'as the task has it');
    };
    return;
}

# In both modes. `error`: of the payloads that the language does not read.
sub survives_payloads {
    my (%error) = @_;
    subtest 'a payload that the language does not read' => sub {
        my $beside = act('gate', gate => gate('beside payloads'));
        wait_told('began', $beside);
        my $open = gate('payloads');
        open_gate('payloads');
        for my $kind (sort keys %{ +HOSTILE }) {
            my $id = add_job($node, 'act',
                qq('{"do": "gate", "gate": "$open", "more": ${\ HOSTILE->{$kind} }}'));
            my $state = $error{$kind} ? 'failed' : 'completed';
            is(wait_finished($id), "$state|1|0", "$kind: $state at once");
            like(of_finished('last_error', $id), $error{$kind}, "$kind: and says why")
              if $error{$kind};
        }
        open_gate('beside payloads');
        is(wait_finished($beside), 'completed|1|0', 'no other job of the program notices');
    };
    return;
}

sub ends_by_words {
    subtest 'ends by the words of the library' => sub {
        is(wait_finished(act('for good')), 'failed|1|0', 'a failure for good is not tried again');
        my $rest = act('rest');
        is(wait_finished($rest), 'completed|2|0', 'the rest of the work is the next attempt');
        is(of_finished('result', $rest), '"rest"', 'with the payload of the rest');
        my $snoozed = act('snooze');
        is(wait_finished($snoozed), 'completed|1|0', 'a snooze gives the attempt back');
        is(of_finished('result', $snoozed), '{"seen":true}', 'and keeps its checkpoint');
        my $reported = act('report');
        is(wait_finished($reported), 'completed|2|0', 'a failed attempt is tried again');
        is(of_finished('result', $reported), '{"at":1}', 'and the next has the checkpoint');
        my $later = act('later');
        wait_told('began', $later);
        wait_until($node, "SELECT state = 'ready' AND run_at > pulse.now() + interval '50 min'
            FROM pulse.job WHERE id = $later", 'not before the time that the failure gives');
        value($node, "SELECT pulse.cancel_job($later)");
    };
    return;
}

# `check`: gets the job as the program has told the job.
sub tells_of_itself {
    my ($check) = @_;
    subtest 'what a job says of itself' => sub {
        my $id = act('ask', options => q{queue_name => 'mail', job_key => 'key'});
        is(wait_finished($id), 'completed|1|0', 'it completes');
        my $job = decode_json(of_finished('result', $id));
        is($job->{id}, $id, 'its id');
        is($job->{token}, value($node, "SELECT token FROM pulse.attempt WHERE job_id = $id"),
            'its token');
        is($job->{text}, '{"do":"ask"}', 'the payload as it was spelled');
        is_deeply([ @$job{qw(attempt last queue key)} ], [ 1, undef, 'mail', 'key' ], 'the rest');
        $check->($job) if $check;
    };
    return;
}

# `add`: adds a job that prints, in place of act() for the first so many of the twenty.
sub prints_with_its_job {
    my ($worker, $count, $add) = @_;
    subtest 'each line of twenty jobs at once has its own job' => sub {
        my %lines = (gate => gate('lines'), count => LINES);
        my @jobs = map { act('lines', %lines) } 1 .. PRINTERS - ($count // 0);
        push @jobs, map { $add->('lines', %lines) } 1 .. $count // 0;
        wait_told('began', $_) for @jobs;
        open_gate('lines');
        is(wait_finished($_), 'completed|1|0', "job $_") for @jobs;
        $worker->wait_for('output', job => $_, text => 'line ' . LINES . " of job $_") for @jobs;
        my %printed;
        push @{ $printed{ $_->{job} } }, $_->{text}
          for grep { $_->{job} } $worker->events('output');
        for my $id (@jobs) {
            is(join(',', @{ $printed{$id} }), join(',', map { "line $_ of job $id" } 1 .. LINES),
                "job $id: its lines, and no other");
        }
        ok($worker->wait_for('output', text => 'started outside of jobs'),
            'outside of jobs: no job');
        is(wait_finished(act('after its end')), 'completed|1|0', 'a job may leave work behind');
        my $line = $worker->wait_for('output', text => 'behind the end');
        ok(!$line->{job}, 'what is printed then is of no job');
        wait_finished(act('echo', value => 1));
        is(scalar($worker->events('lines_dropped')), 0, 'and no line comes behind an answer');
    };
    return;
}

# So many of ten frames each: more frames than the lines that a worker tells of a program in a
# second, and fewer stacks, even when the lines of prints_with_its_job() are of the same second.
sub logs_stacks_whole {
    my ($worker) = @_;
    subtest 'each stack that a handler logs is one line' => sub {
        my $id = act('stacks', count => STACKS);
        is(wait_finished($id), 'completed|1|0', 'the job completes');
        $worker->wait_for('output', job => $id, text => 'behind the stacks');
        my @stacks = grep { $_->{text} =~ /\n/ } $worker->events('output', job => $id);
        is(scalar(@stacks), STACKS, 'none is left out');
        like($stacks[0]{text}, qr/\bstack\b.*\n.*\n/s, 'and each has its frames');
        is($stacks[0]{level}, 'error', 'and its level');
        is(scalar($worker->events('output_left_out')), 0, 'nor is what other jobs tell');
    };
    return;
}

# In both modes.
sub takes_so_many {
    subtest 'a task takes only so many jobs at once' => sub {
        my $gate = gate('few');
        my @jobs = map { add_job($node, 'few', qq('{"gate": "$gate"}')) } 1 .. 4;
        wait_until($node, q{SELECT count(*) = 2 FROM pulse.job
            WHERE identifier = 'few' AND state = 'running'}, 'two run');
        is(wait_finished(act('echo', value => 1)), 'completed|1|0', 'other tasks go on');
        open_gate('few');
        is(wait_finished($_), 'completed|1|0', "job $_") for @jobs;
    };
    return;
}

# Within a subtest, in both modes: a job that obeys, and how its handler is told.
sub is_cancelled {
    my ($id, $how) = @_;
    wait_told('began', $id);
    value($node, "SELECT pulse.cancel_job($id)");
    is((wait_told('told', $id))[2], 'cancelled', $how);
    is(wait_finished($id), 'cancelled|1|0', 'and the job is cancelled');
    return;
}

# `add`: adds another job that obeys.
sub is_told_to_end {
    my ($add) = @_;
    subtest 'a handler is told to end' => sub {
        is_cancelled(act('obey'), 'of a cancelled job by its signal');
        is_cancelled($add->('obey'), 'of another kind of handler likewise') if $add;
        # Time enough for a handler to begin.
        value($node, q{SELECT pulse.set_task('act', timeout => '2s')});
        my $late = act('obey', options => $once);
        is((wait_told('told', $late))[2], 'timeout', 'past the deadline by its signal');
        is(wait_finished($late), 'failed|1|0', 'and the attempt has failed');
        is(outcomes($node, $late), 'timed_out', 'as one that is late');
        my $never = act('never', options => $once);
        is(wait_finished($never), 'failed|1|0', 'one that never returns ends');
        is(outcomes($node, $never), 'timed_out', 'at its deadline');
        value($node, q{SELECT pulse.set_task('act', timeout => '1 h')});
        is(wait_finished(act('echo', value => 1)), 'completed|1|0', 'a new program goes on');
    };
    return;
}

# `more`: further assertions of the subtest.
sub survives_exit {
    my ($more) = @_;
    subtest 'a program that exits' => sub {
        my $exits = act('exit', options => $once);
        is(wait_finished($exits), 'failed|1|0', 'fails the job that it had alone');
        is(of_finished('last_error', $exits), 'its program exited with code 7', 'and says how');
        is(wait_finished(act('echo', value => 1)), 'completed|1|0', 'and is started again');
        $more->() if $more;
    };
    return;
}

# `has_ended`: whether the program of this process has told of its end.
sub drains_at_sigterm {
    my ($worker, $has_ended) = @_;
    subtest 'a drain' => sub {
        my $running = act('gate', gate => gate('drain'));
        my (undef, undef, undef, $pid) = wait_told('began', $running);
        $worker->signal('TERM');
        $worker->wait_for('draining');
        open_gate('drain');
        is($worker->wait_exit, DRAINED, 'the worker ends');
        is(wait_finished($running), 'completed|1|0', 'after the job has ended');
        ok($has_ended->($pid), 'and the program ends by itself');
    };
    return;
}

# Within a subtest, in both modes: so many jobs that complete in a transaction of their own, whose
# program dies at each place in turn. `run`: runs them all to their ends.
sub happens_once {
    my ($count, $run) = @_;
    value($node, q{SELECT pulse.set_task('act', max_attempts => 50, max_crashes => 50)});
    value($node, 'CREATE TABLE IF NOT EXISTS effect (job bigint); DELETE FROM effect');
    my @places = ('before the end', 'before the commit', 'after the commit', 'nowhere');
    my @jobs = map { act('complete', dies => $places[ $_ % @places ]) } 0 .. $count - 1;
    $run->(@jobs);
    my $ids = join ',', @jobs;
    is(value($node, "SELECT state, count(*) FROM pulse.finished_job WHERE id IN ($ids) GROUP BY 1"),
        "completed|$count", 'each job is completed, while its program is killed again and again');
    is(value($node, 'SELECT count(*), count(DISTINCT job) FROM effect'), "$count|$count",
        'with one effect');
    return;
}

# Under pulse-worker. `start`: starts a worker with further options.
sub effect_happens_once {
    my ($count, $start) = @_;
    subtest 'an effect in the transaction of the handler happens once' => sub {
        local @ENV{qw(PGHOST PGPORT PGUSER PGDATABASE)} =
          ($node->host, $node->port, scalar getpwuid($>), 'postgres');
        my $killed;
        happens_once($count, sub {
            $killed = $start->('--pass-env', qw(PGHOST PGPORT PGUSER PGDATABASE));
            wait_finished($_) for @_;
        });
        my $undone = act('complete', dies => 'never commits', options => $once);
        is(wait_finished($undone), 'failed|1|0', 'a transaction that is rolled back fails the job');
        is(of_finished('last_error', $undone), 'its transaction did not commit', 'and says so');
        drain($killed);
    };
    return;
}

# `start`: as of effect_happens_once. The report of the handler tells the worker at once that the
# claim is over.
sub goes_on_after_its_end {
    my ($start) = @_;
    subtest 'a handler goes on after its transaction has ended the job' => sub {
        local @ENV{qw(PGHOST PGPORT PGUSER PGDATABASE)} =
          ($node->host, $node->port, scalar getpwuid($>), 'postgres');
        my $worker = $start->('--pass-env', qw(PGHOST PGPORT PGUSER PGDATABASE));
        my ($beside, $after) = map { gate($_) } 'beside its end', 'after its end';
        my $bystander = act('gate', gate => $beside, options => $once);
        wait_told('began', $bystander);
        my $id = act('complete', dies => 'nowhere', gate => $after);
        $worker->wait_for('revoked', job => $id);
        open_gate('after its end');
        is(wait_finished($id), 'completed|1|0', 'the job is completed');
        is(wait_finished(act('echo', value => 1)), 'completed|1|0', 'the program runs other jobs');
        open_gate('beside its end');
        is(wait_finished($bystander), 'completed|1|0', 'and no other job notices');
        drain($worker);
    };
    return;
}

1;
