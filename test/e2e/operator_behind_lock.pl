# An operator who asks while a lock keeps readers from the jobs hears of the lock, and for whom the
# process waits that awaits the lock.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Console;
use Pulse::Server;
use Pulse::Session;

use constant REFUSED => 1;

my $node = start_server('main', settings => \%PATIENT);
value($node, q{BEGIN; SELECT pulse.add_job('brew'); PREPARE TRANSACTION 'import'});
my $waiter = Pulse::Session->new($node);
my $pid = $waiter->backend_pid;
$waiter->ask('BEGIN; LOCK TABLE pulse.job IN ACCESS EXCLUSIVE MODE');
wait_until($node, "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $pid",
    'a process awaits a lock');

like(value($node, q{SELECT detail FROM pulse.doctor() WHERE finding = 'locked table'}),
    qr/^Process $pid .* waits for Access\w+ on pulse.job behind the prepared transaction 'import'/,
    'doctor() names the prepared transaction that has it');
my $said = pulse($node, 'overview');
is($said->{status}, REFUSED, 'a reader does not wait without a word');
like($said->{err}, qr/lock timeout\n  hint: A lock kept the answer for 5 seconds: pulse doctor/,
    'and tells where the lock is named');

value($node, q{COMMIT PREPARED 'import'});
$waiter->answer;
$waiter->query('COMMIT');
is(pulse($node, 'overview')->{status}, 0, 'once it is gone the reader has the answer');
$waiter->quit;
expect_healthy($node);
done_testing();
