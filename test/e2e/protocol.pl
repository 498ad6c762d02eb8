# The worker protocol: each rule of docs/worker-protocol.md is played against pulse-worker with an
# executable, by the kit of test/protocol, which prints the results. PULSE_WORKERS names other
# workers of test/protocol/workers; with PULSE_FAULTS the kit also has to see faults.
use strict;
use warnings FATAL => 'all';

use Test::More;

my ($bindir) = map { chomp; $_ } `pg_config --bindir`;
# Takes over the results of a program that prints TAP.
sub relay {
    my ($name, @command) = @_;
    subtest $name => sub {
        open my $said, '-|', @command or die "$command[0]: $!\n";
        while (<$said>) {
            if (/^(not )?ok \d+ - (.*)/) { ok(!$1, $2) }
            elsif (/^# (.*)/) { diag($1) }
        }
        ok(close $said, 'all was played');
    };
    return;
}

relay($_, 'test/protocol/run', $bindir, $_) for split ' ', $ENV{PULSE_WORKERS} // 'executable';
relay('faults', 'test/protocol/faults', $bindir) if $ENV{PULSE_FAULTS};
done_testing();
