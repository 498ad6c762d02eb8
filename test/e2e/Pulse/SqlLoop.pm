# Loops in SQL that sessions run in the server until a test ends them.
package Pulse::SqlLoop;
use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use Pulse::Server;

our @EXPORT = qw(allow_loops end_loops loop);

# Before the first loop, and again after end_loops() for the next ones. Gives loops the function
# linger: a transaction that computes stays open, as one does that waits for its client.
sub allow_loops {
    my ($node) = @_;
    value($node, q{CREATE TABLE IF NOT EXISTS looping (yes int);
        INSERT INTO looping VALUES (1);
        CREATE OR REPLACE FUNCTION linger(turns int) RETURNS bigint LANGUAGE sql
            RETURN (SELECT count(*) FROM generate_series(1, turns))});
    return;
}

# Each loop ends with its present turn.
sub end_loops {
    my ($node) = @_;
    value($node, 'DELETE FROM looping');
    return;
}

# `body` may end its transaction.
sub loop {
    my ($declarations, $body) = @_;
    return qq{DO \$\$
DECLARE
  turn int := 0;
  $declarations
BEGIN
  WHILE EXISTS (SELECT FROM looping) LOOP
    turn := turn + 1;
    $body
    COMMIT;
  END LOOP;
END \$\$};
}

1;
