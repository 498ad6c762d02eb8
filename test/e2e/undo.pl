# Random flows, a random life, a random operation on some of their jobs, and its undo: what stood
# before stands again, row by row, less what docs/operations.md lists, and verify() is silent. In
# some rounds jobs go on in between: then those that came back are as before. PULSE_FLOWS says how
# many flows, of two a round, PULSE_SEED which round is the first.
use strict;
use warnings FATAL => 'all';

use Test::More;

use File::Basename qw(dirname);
use Pulse::Server;
use Pulse::Session;

my $rounds = int(($ENV{PULSE_FLOWS} // 120) / 2);
my $seed = $ENV{PULSE_SEED} // 1 + int rand 9_000_000;
note "PULSE_SEED=$seed PULSE_FLOWS=" . 2 * $rounds;

my $server = start_server('primary', settings => {
    'pulse.sweep_interval' => '-1',
    'pulse.sweep_threshold' => '1h',
    'pulse.keep_completed' => '1h',
    'pulse.max_crashes' => '1',
});
my $session = Pulse::Session->new($server);
$session->query('SET client_min_messages = error');
$session->query('\i ' . dirname(__FILE__) . '/undo/random.sql');
$session->query(q{SELECT pulse.set_queue('strict', strict => true, on_dead => 'pause')});

my $actions = q{SELECT string_agg(DISTINCT action, ' ' ORDER BY action)
    FROM undo.round WHERE undone > 0};
my $left_alone = 'SELECT sum(left_alone) FROM undo.round';

# Chance decides what a round has, so further ones follow until each has been there.
sub is_over {
    my ($done) = @_;
    return 0 if $done < $rounds;
    return $done >= 10 * $rounds
      || $session->query($actions) eq 'cancel fail reschedule retry'
      && $session->query($left_alone) ne '0';
}

# In portions, because a session's answer is waited for so long only.
for (my $done = 0; !is_over($done); $done += 20) {
    $session->query(sprintf 'CALL undo.play(%d, %d)', $seed + $done, 20);
}
is($session->query(q{SELECT string_agg(d::text, E'\n')
        FROM (SELECT * FROM undo.difference ORDER BY seed LIMIT 3) AS d}), '',
    'what an operation changed is as before once it is undone');
is($session->query('SELECT * FROM undo.broken'), '',
    'every promise is kept, each job is met, and none is left alone that has not moved');
is($session->query($actions), 'cancel fail reschedule retry', 'each action was undone');
isnt($session->query($left_alone), '0', 'and some jobs had moved meanwhile');
note $session->query(q{SELECT string_agg(format('%s: %s undone, %s left alone', r.action, r.undone,
        r.left_alone), '; ') FROM (SELECT action, sum(undone) AS undone,
        sum(left_alone) AS left_alone FROM undo.round GROUP BY action) AS r});

done_testing();
