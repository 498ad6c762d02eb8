# `pulse doctor` ends with 1 where the doctor warns, and with 0 where there is nothing or a notice.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Console;
use Pulse::Server;

my $node = start_server('main', streaming => 1, settings => {
        'pulse.databases' => 'postgres',
        # A busy machine may be late with a sweep.
        'pulse.sweep_interval' => '15s',
        'pulse.sweep_threshold' => '60s',
    });
wait_until($node, 'SELECT count(*) = 0 FROM pulse.doctor()', 'a silent doctor');

# How `pulse doctor` ends, and what it found, by severity.
sub ends {
    my $said = pulse($node, 'doctor');
    return join ' ', $said->{status}, $said->{out} =~ /^(error|warning|notice)\b/mg;
}

is(ends(), '0', 'with 0 where nothing is wrong');
value($node, q{SELECT pulse.schedule('nightly', 'work', cron => '0 3 * * *')});
value($node, q{SELECT pulse.pause_schedule('nightly')});
is(ends(), '0 notice', 'and where there are only notices');
value($node, q{SELECT pg_create_physical_replication_slot('left_over', true)});
value($node, q{SELECT pg_logical_emit_message(false, 'x', 'y'), pg_switch_wal()}) for 1 .. 14;
is(ends(), '1 warning notice', 'with 1 where there is a warning');
value($node, q{SELECT pg_drop_replication_slot('left_over')});
value($node, q{SELECT pulse.unschedule('nightly')});
is(ends(), '0', 'and with 0 again once it is mended');

expect_healthy($node);
done_testing();
