# What the library of each language promises of a program without pulse-worker, which is a worker
# of its own: the direct mode. Each function is a subtest; the programs are those of
# Pulse::LibraryActs. test/protocol has the rules of the protocol, Pulse::LibraryPromises what both
# modes promise.
package Pulse::DirectPromises;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use Test::More;

use Pulse::LibraryActs;
use Pulse::LibraryPromises qw(promise_on is_cancelled happens_once);
use Pulse::Pooler;
use Pulse::Process;
use Pulse::ProgramRun qw(wait_finished of_finished);
use Pulse::Server;

our @EXPORT = qw(promise_directly_on prints_with_its_job_directly names_lines_of_stacks
  is_told_to_end_directly ends_by_words_directly survives_restart_directly
  ends_without_server_directly
  ends_at_sigterm_directly effect_happens_once_directly refuses_pooler_directly
  refuses_databases_directly);

use constant { PRINTERS => 20, LINES => 3, FORCED => 75 };

my ($node, $start);
my $once = 'max_attempts => 1';

# The server of all that follows. `start`: starts a program, whose command a function may put into
# another command, with further variables.
sub promise_directly_on {
    ($node, $start) = @_;
    promise_on($node);
    return;
}

# `add`: adds a job of the task that the next argument names, which prints, for the last so many of
# the twenty.
sub prints_with_its_job_directly {
    my ($program, $count, $task, $add) = @_;
    subtest 'each line of twenty jobs at once names its own job' => sub {
        my %lines = (gate => gate('lines'), count => LINES);
        my %task = map { (act('lines', %lines) => 'act') } 1 .. PRINTERS - ($count // 0);
        $task{ $add->('lines', %lines) } = $task for 1 .. $count // 0;
        wait_told('began', $_) for keys %task;
        open_gate('lines');
        is(wait_finished($_), 'completed|1|0', "job $_") for keys %task;
        my @lines;
        for my $id (keys %task) {
            push @lines, map { "$task{$id} $id: line $_ of job $id" } 1 .. LINES;
            my $last = $lines[-1];
            $program->lines->wait_for($last, sub { $_[0] eq $last });
        }
        is_deeply([ sort grep { /line/ } $program->lines->lines ], [ sort @lines ],
            'and no other');
    };
    return;
}

# No log escapes line breaks.
sub names_lines_of_stacks {
    my ($program) = @_;
    subtest 'each line of a stack names its job' => sub {
        my $id = act('stacks', count => 1);
        is(wait_finished($id), 'completed|1|0', 'the job completes');
        my $last = "act $id: behind the stacks";
        $program->lines->wait_for($last, sub { $_[0] eq $last });
        my $printed = join "\n", $program->lines->lines, $program->other_output;
        cmp_ok(scalar(() = $printed =~ /^act $id: .*stack/mg), '>', 2, 'several lines');
        unlike($printed, qr/^(?!act $id: ).*\bstack\b/m, 'and no other');
    };
    return;
}

# `add`: adds another job that obeys.
sub is_told_to_end_directly {
    my ($add) = @_;
    subtest 'a handler is told to end' => sub {
        is_cancelled(act('obey'), 'of a cancelled job by its signal');
        is_cancelled($add->('obey'), 'of another kind of handler likewise') if $add;
        value($node, q{SELECT pulse.set_task('act', timeout => '2s')});
        my ($late, $never) = map { act($_, options => $once) } qw(obey never);
        is((wait_told('told', $late))[2], 'timeout', 'past the deadline by its signal');
        for ($late, $never) {
            is(wait_finished($_), 'failed|1|0', 'and the attempt has failed');
            is(outcomes($node, $_), 'timed_out', 'as one that is late');
        }
        value($node, q{SELECT pulse.set_task('act', timeout => '1 h')});
    };
    return;
}

# For each deed the error, beside those that programs of all languages have.
sub ends_by_words_directly {
    my (%error) = @_;
    $error{'for good'} = qr/no such address/;
    $error{'never commits'} = qr/^its transaction did not commit$/;
    subtest 'ends that the server refuses, and ends by the words of the library' => sub {
        my %id = map {
            my %act = /commits/ ? (do => 'complete', dies => $_) : (do => $_);
            ($_ => act(delete $act{do}, %act, options => $once))
        } sort keys %error;
        for (sort keys %id) {
            is(wait_finished($id{$_}), 'failed|1|0', "$_: the job fails");
            like(of_finished('last_error', $id{$_}), $error{$_}, "$_: and says why");
        }
        is(wait_finished(act('snooze')), 'completed|1|0', 'a snooze gives the attempt back');
        is(wait_finished(act('rest')), 'completed|2|0', 'the rest of the work is the next attempt');
        is(wait_finished(act('report')), 'completed|2|0', 'an attempt gets the checkpoint');
    };
    return;
}

sub survives_restart_directly {
    subtest 'a server that restarts under the program' => sub {
        my ($ends, $stays) = map { act('gate', gate => gate($_)) } qw(ends stays);
        wait_told('began', $_) for $ends, $stays;
        $node->stop('fast');
        open_gate('ends');
        $node->start;
        is(wait_finished($ends), 'completed|1|0', 'an end that comes meanwhile is reported');
        open_gate('stays');
        is(wait_finished($stays), 'completed|1|0', 'and the claims of the others stand');
    };
    return;
}

sub ends_without_server_directly {
    subtest 'SIGTERM while the server is away' => sub {
        my $program = $start->();
        is(wait_finished(act('echo', value => 1)), 'completed|1|0', 'a program');
        $node->stop('fast');
        $program->signal('TERM');
        is($program->wait_exit, 0, 'ends when the grace is over');
        $node->start;
    };
    return;
}

# `program`: has a handler that never returns. `patient`: the variables of a program whose handlers
# have a minute to end.
sub ends_at_sigterm_directly {
    my ($program, %patient) = @_;
    subtest 'SIGTERM' => sub {
        $program->signal('TERM');
        is($program->wait_exit, FORCED, 'the handler that never returns ends with the process');
        $program = $start->(undef, %patient);
        my ($obeys, $finishes) = (act('obey'), act('deaf', gate => gate('term')));
        wait_told('began', $_) for $obeys, $finishes;
        $program->signal('TERM');
        is((wait_told('told', $obeys))[2], 'shutdown', 'handlers are told');
        # As npm does, and a terminal with npm in between.
        $program->signal('TERM');
        open_gate('term');
        is($program->wait_exit, 0, 'the program ends when all handlers have ended');
        is(outcomes($node, $obeys), 'interrupted', 'a job that ends for it runs again');
        is(value($node, 'SELECT sum(crashes) FROM pulse.job'), 0, 'without a crash');
        value($node, 'SELECT pulse.cancel_job(id) FROM pulse.job');
    };
    subtest 'a handler that does not end' => sub {
        $program = $start->();
        my $deaf = act('deaf', gate => gate('never'));
        wait_told('began', $deaf);
        $program->signal('TERM');
        is($program->wait_exit, FORCED, 'ends with the process');
        is(value($node, "SELECT state, crashes FROM pulse.job WHERE id = $deaf"), 'ready|0',
            'and the job runs again, without a crash');
        value($node, "SELECT pulse.cancel_job($deaf)");
    };
    return;
}

# So many jobs, whose program dies again and again.
sub effect_happens_once_directly {
    my ($count) = @_;
    subtest 'an effect in the transaction of the handler happens once' => sub {
        happens_once($count, sub {
            # A supervisor starts the program anew.
            my $stop = gate('stop');
            my $program =
              $start->(sub { [ 'sh', '-c', "while ! test -e '$stop'; do @_; done" ] });
            wait_finished($_) for @_;
            open_gate('stop');
            kill 'TERM', -$program->pid;
            $program->wait_exit;
        });
    };
    return;
}

# A program that these variables lead astray ends, and says so.
sub is_refused {
    my ($says, %variables) = @_;
    my $program = $start->(undef, %variables);
    isnt($program->wait_exit, 0, 'the program ends');
    my $said = $program->other_output;
    like($said, $says, 'and says why');
    unlike($said, qr/Traceback/, 'without lines of the library');
    return;
}

sub refuses_pooler_directly {
    subtest 'behind a pooler' => sub {
        plan skip_all => 'no pgbouncer' if !Pulse::Pooler::is_installed();
        my %address = Pulse::Pooler->start($node, 'pooler', size => 4)->address;
        is_refused(qr/a pooler stands between.*pulse-worker --program/s,
            PGHOST => $address{host}, PGPORT => $address{port});
    };
    return;
}

# `hint`: how a program of the language is told where to connect.
sub refuses_databases_directly {
    my ($hint) = @_;
    subtest 'a database without the extension' => sub {
        value($node, 'CREATE DATABASE bare');
        is_refused(qr/no extension pg_pulse\nHINT: .*CREATE EXTENSION/, PGDATABASE => 'bare');
    };
    subtest 'a database with an older extension' => sub {
        value($node, q{CREATE EXTENSION pg_pulse VERSION '0.1.0'}, 'bare');
        is_refused(qr/the database has 0\.1\.0\nHINT: .*ALTER EXTENSION pg_pulse UPDATE/,
            PGDATABASE => 'bare');
    };
    subtest 'a database that there is not, and a server that there is not' => sub {
        is_refused(qr/database "nowhere" does not exist\n$hint/, PGDATABASE => 'nowhere');
        # A name that has two addresses.
        is_refused(qr/refused\b.*\n$hint/is, PGHOST => 'localhost', PGPORT => 1);
    };
    return;
}

1;
