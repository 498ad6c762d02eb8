# No row of a list is blank: neither its name, nor its counts and settings where the server has more
# names than the thousand that are listed.
use strict;
use warnings FATAL => 'all';

use HTTP::Tiny;
use Test::More;

use Pulse::Console;
use Pulse::Depths;
use Pulse::Serve;
use Pulse::Server;

my $node = start_server('main', settings => \%PATIENT);
my $serve = start_serve($node);

sub page { my ($path) = @_; return HTTP::Tiny->new->get("$serve->{url}$path")->{content} }

# The row of that name in a list of `pulse`.
sub listed {
    my ($list, $field, $name) = @_;
    my $rows = json_of(pulse($node, '--json', $list)->{out});
    return (grep { ($_->{$field} // '') eq $name } @$rows)[0];
}

subtest 'names of which nobody sees anything' => sub {
    value($node, q{SELECT pulse.add_job(' ', queue_name => 'mail/'), pulse.add_job(' ')});
    like(page('/tasks'), qr{<a href="/task[?]name=[^"]*">\\x20</a>}, 'a task of blanks is spelled');
    like(pulse($node, 'tasks')->{out}, qr/^\\x20 +1 /m, 'also in a table');
    like(page('/queues'), qr{<a href="/queue[?]name=mail%2[Ff]">mail/</a>},
        'a queue whose last part is empty has its whole name');
    value($node, 'DELETE FROM pulse.job');
};

# The cells of a queue's row by their titles.
sub cells_of {
    my ($name) = @_;
    my ($row) = grep { /title="$name"/ } page('/queues') =~ m{<tr>.*?</tr>}gs;
    return { ($row // '') =~ /data-title="(\w+)"[^>]*>([^<]*)</g };
}

subtest 'names beyond the first thousand' => sub {
    # The queue of which a job was claimed comes behind those of which nothing was.
    value($node, q{SELECT pulse.add_job('mail', queue_name => 'level') FROM generate_series(1, 2)});
    value($node, q{DO $$
        DECLARE worker bigint := (SELECT id FROM pulse.register_worker('w'));
        BEGIN
          COMMIT;
          PERFORM pulse.claim(worker, 1);
        END $$});
    value($node, q{SELECT pulse.add_job('mail', queue_name => 'level/within'),
        pulse.add_job('kept', queue_name => 'kept'), pulse.set_queue('kept', concurrency => 7),
        pulse.set_task('kept', max_attempts => 3)});
    Pulse::Depths->new($node)->become_exact;
    is(cells_of('level')->{running}, 1, 'a queue that is a level, too, has its counts');
    value($node, q{SELECT pulse.add_job('mail', queue_name => 'z ' || n),
        pulse.set_queue('b ' || n, concurrency => 2), pulse.set_task('b ' || n, max_attempts => 2)
        FROM generate_series(1, 1100) AS n});
    is_deeply([ @{ cells_of('level') }{qw(open parked running)} ], [qw(0+ 0+ 0+)],
        'where it is not listed, at least none, as level of a queue that is');
    is(listed('queues', 'name', 'kept')->{concurrency}, 7,
        'a listed queue has its settings, beside a thousand others with settings');
    is(listed('tasks', 'identifier', 'kept')->{max_attempts}, 3, 'and a task');
};

done_testing();
