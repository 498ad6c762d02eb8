# pg_repack of a table, as a DBA calls it.
package Pulse::Repack;

use strict;
use warnings FATAL => 'all';

use Exporter qw(import);

use Pulse::Lines;
use Pulse::Program;
use Pulse::Server;

our @EXPORT = qw(has_repack repack);

# Before 1.5.0 it locks a table under a statement_timeout of 100 ms, from which its next statement
# suffers where the processor is busy: the reset of that timeout is cancelled, or the lock is tried
# again outside of a transaction. It removes what it had made, and the DBA repeats it, as
# docs/recipes/what-to-do.md says.
my $out_of_time = qr/canceling\ statement\ due\ to\ statement\ timeout\n.*RESET\ statement_timeout
    |LOCK\ TABLE\ can\ only\ be\ used\ in\ transaction\ blocks/x;
use constant TRIES => 10;

my $program = server_folder('bindir') . '/pg_repack';
my $runs = 0;

sub has_repack { return -x $program }

# Returns nothing once it has succeeded, else its exit code and what it said. `look` is called again
# and again meanwhile.
sub repack {
    my ($node, $look, @options) = @_;
    my ($code, $said);
    for (1 .. TRIES) {
        my $run = Pulse::Program->start('repack-' . ++$runs,
            [ $program, '--no-kill-backend', @options, '--dbname', 'postgres',
                '--host', $node->host, '--port', $node->port ]);
        $look->() until $run->{process}->is_gone;
        ($code, $said) = ($run->wait_exit, $run->other_output);
        last if $said !~ $out_of_time;
    }
    return $code eq '0' && $said !~ $out_of_time ? '' : "$code, $said";
}

1;
