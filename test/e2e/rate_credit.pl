# P13: claims side by side in a level whose rate is far from binding take as many jobs as it has
# tokens and no more; a crash of the server costs tokens and gives none.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::SqlLoop;
use Pulse::SqlWorker;

use constant { BURST => 2000, JOBS => 2200, QUEUES => 110, AT_ONCE => 20, SESSIONS => 3 };

my $node = start_server('main', settings => \%PATIENT);
my $number = 0;

sub give_jobs {
    my ($level) = @_;
    value($node, sprintf q{SELECT pulse.set_queue('%s', rate => 1, per => '366 days', burst => %d);
        SELECT pulse.set_queue('%1$s/*', concurrency => %d);
        SELECT count(pulse.add_job('work', queue_name => '%1$s/' || n %% %d))
          FROM generate_series(1, %d) AS n}, $level, BURST, AT_ONCE, QUEUES, JOBS);
    return;
}

# How many claims there were of a level's jobs.
sub claims {
    my ($level) = @_;
    return value($node, qq{SELECT coalesce(sum(attempts), 0) FROM (
        SELECT queue_name, attempts FROM pulse.job UNION ALL
        SELECT queue_name, attempts FROM pulse.finished_job) AS j
        WHERE queue_name LIKE '$level/%'});
}

sub start_workers {
    allow_loops($node);
    return map {
        my $worker = Pulse::SqlWorker->new($node, 'worker ' . ++$number);
        my $id = $worker->id;
        $worker->ask(loop('ids bigint[]; tokens bigint[];', qq{
            SELECT coalesce(array_agg(c.id), '{}'), coalesce(array_agg(c.token), '{}')
              INTO ids, tokens FROM pulse.claim($id, 32) AS c;
            COMMIT;
            PERFORM linger(0.2);
            CALL end_all('complete_many', ids, tokens);}));
        $worker;
    } 1 .. SESSIONS;
}

sub ended { my ($level, $count) = @_; return qq{SELECT count(*) >= $count
    FROM pulse.finished_job WHERE queue_name LIKE '$level/%'} }

# Takes alone what there is, until nothing comes.
sub take_the_rest {
    my $worker = Pulse::SqlWorker->new($node, 'worker ' . ++$number);
    for (my $empty = 0; $empty < 20; $empty++) {
        my @jobs = $worker->claim(32) or next;
        $worker->complete(@jobs);
        $empty = 0;
    }
    $worker->quit;
    return;
}

give_jobs('first');
my @workers = start_workers();
wait_until($node, ended('first', BURST), 'all tokens of a level are used');
end_loops($node);
$_->quit for @workers;
take_the_rest();
is(claims('first'), BURST, 'and no other');

give_jobs('second');
@workers = start_workers();
wait_until($node, ended('second', BURST / 4), 'a quarter of them');
kill_server($node);
$_->kill for @workers;
$node->start;
take_the_rest();
cmp_ok(claims('second'), '<=', BURST, 'a crash gives no token');
cmp_ok(claims('second'), '>', BURST / 2, 'and costs less than half of them');
note claims('second'), ' claims';

expect_healthy($node);
done_testing();
